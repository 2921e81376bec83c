import { describe, expect, it } from 'vitest'
import { StoreUnavailableError } from 'writefence'
import { failure, intent, refused } from '../../src/conformance/fence-destination.ts'
import { faultyDestination } from '../support/faulty-destination.ts'
import { cause } from '../support/faulty-store.ts'

const never = async () => expect.fail('the effect ran where it must not')
const boom = new Error('boom')

describe('settling that fails', () => {
  it('leaves the reservation, and the caller gets the real answer', async () => {
    const { guard, plan, faults } = faultyDestination()
    plan('pass', 'before')
    const outcome = await guard.effect(intent(1, 'x'), async () => 'r')
    expect(outcome).toMatchObject({ status: 'applied', result: 'r' })
    expect(faults).toMatchObject([{ fault: 'settle_failed', error: { cause } }])
    await refused(guard.effect(intent(1, 'x'), never), 'in_flight')
  })

  it("with 'rerun' is outcome_unknown instead: the next caller will run it again", async () => {
    const { guard, plan } = faultyDestination()
    plan('pass', 'before')
    const call = guard.effect(intent(1, 'x'), async () => 'r', { onUnknown: 'rerun' })
    const error = await failure(call)
    expect(error).toMatchObject({ code: 'outcome_unknown', jobId: 'job', generation: 1 })
    expect(error).toMatchObject({ highestGeneration: 1, cause: { cause } })
  })
})

describe('while the store is unavailable', () => {
  it('an effect is refused, and does not run', async () => {
    const { guard, plan, faults } = faultyDestination()
    plan('before', 'after')
    const named = await failure(guard.effect(intent(1, 'x'), never))
    expect(named).toBeInstanceOf(StoreUnavailableError)
    expect(named).toMatchObject({ retryable: true, cause })
    const unnamed = await failure(guard.effect(intent(1), never))
    expect(unnamed).toMatchObject({ code: 'store_unavailable', retryable: false, cause })
    expect(faults.map(({ fault }) => fault)).toEqual(['store_unavailable', 'store_unavailable'])
  })

  it('an effect that may fail open runs unguarded, and says so loudly', async () => {
    const { guard, plan, faults } = faultyDestination({ dangerouslyFailOpen: true })
    plan('before')
    const outcome = await guard.effect(intent(4, 'x'), async () => 'r')
    expect(outcome).toEqual({
      status: 'applied',
      result: 'r',
      appliedGeneration: 4,
      highestGeneration: 4,
    })
    const fault = { fault: 'failed_open', jobId: 'job', generation: 4, operationId: 'x' }
    expect(faults).toMatchObject([{ ...fault, error: { cause } }])
    expect(await guard.inspect('job')).toBeUndefined()
  })

  it('an effect that may fail open is still refused while the store answers', async () => {
    const { guard, faults } = faultyDestination({ dangerouslyFailOpen: true })
    await guard.advance(intent(5).token)
    await refused(guard.effect(intent(4, 'x'), never), 'stale')
    expect(faults).toEqual([])
  })

  it('a write never fails open', async () => {
    const { guard, plan, d } = faultyDestination({ dangerouslyFailOpen: true })
    plan('before')
    const call = guard.write(intent(4, 'x'), d.appends('x'))
    expect(await failure(call)).toBeInstanceOf(StoreUnavailableError)
    expect(d.log()).toEqual([])
  })

  it('an error that is no outage does not open anything', async () => {
    const { guard, d } = faultyDestination({ dangerouslyFailOpen: true })
    d.db.exec('BEGIN')
    expect(await failure(guard.effect(intent(1, 'x'), never))).toBeInstanceOf(TypeError)
    d.db.exec('COMMIT')
  })

  it('a finding that cannot be recorded is store_unavailable', async () => {
    const { guard, plan } = faultyDestination()
    await failure(guard.effect(intent(1, 'x'), () => Promise.reject(boom)))
    const onUnknown = async () => ({ status: 'applied', result: 'found' }) as const
    plan('pass', 'before')
    const call = guard.effect(intent(1, 'x'), never, { onUnknown })
    expect(await failure(call)).toBeInstanceOf(StoreUnavailableError)
    expect((await guard.effect(intent(1, 'x'), never, { onUnknown })).result).toBe('found')
  })

  it('a second look that fails open runs the effect that the resolver has cleared', async () => {
    const { guard, plan } = faultyDestination({ dangerouslyFailOpen: true })
    await failure(guard.effect(intent(1, 'x'), () => Promise.reject(boom)))
    const onUnknown = async () => ({ status: 'not_applied' }) as const
    plan('pass', 'before')
    const outcome = await guard.effect(intent(1, 'x'), async () => 'r', { onUnknown })
    expect(outcome.result).toBe('r')
  })
})

describe('an effect without an operation id that throws', () => {
  it('leaves a record that holds nobody back, and that only resolving it ends', async () => {
    const { guard } = faultyDestination()
    expect(await failure(guard.effect(intent(1), () => Promise.reject(boom)))).toBe(boom)
    const [left] = await guard.unsettled()
    expect(left).toMatchObject({ status: 'unknown', generation: 1 })
    const { operationId } = left as { operationId: string }
    expect(operationId).toMatch(/^unnamed-/)
    expect((await guard.effect(intent(2), async () => 'r')).status).toBe('applied')
    expect(await guard.prune({ olderThanMs: 0 })).toEqual({ pruned: 0 })
    expect((await guard.advance(intent(2).token)).unknown).toBe(1)
    await guard.resolve({ jobId: 'job', operationId }, { status: 'not_applied' })
    expect(await guard.unsettled()).toEqual([])
  })

  it('leaves none where that is proof that nothing happened', async () => {
    const { guard } = faultyDestination()
    const fails = () => Promise.reject(boom)
    const call = guard.effect(intent(1), fails, { errorsMean: 'not_applied' })
    expect(await failure(call)).toBe(boom)
    expect(await guard.unsettled()).toEqual([])
  })
})
