import { once } from 'node:events'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type EffectOptions, NotAppliedError } from 'writefence'
import { failure, intent } from '../../src/conformance/fence-destination.ts'
import { faultyDestination } from '../support/faulty-destination.ts'
import { SqliteDestination } from '../support/sqlite-destination.ts'

const boom = new Error('boom')
const throws = (error: unknown) => () => Promise.reject(error)
const proof = new NotAppliedError()

/** An effect of operation `x`, and what `onEnded` was told of it. */
async function ended(
  { guard }: Pick<SqliteDestination, 'guard'>,
  perform: () => Promise<unknown>,
  options: EffectOptions<unknown> = {},
  id: string | undefined = 'x',
) {
  const told: string[] = []
  const onEnded = (end: string) => void told.push(end)
  const call = guard.effect(intent(1, id), perform, { ...options, onEnded })
  const error = await call.then(() => undefined).catch((reason: unknown) => reason)
  return { told, error }
}

describe('onEnded is told', () => {
  it.each<[string, () => Promise<unknown>, EffectOptions<unknown>, string]>([
    ['a result', async () => 'r', {}, 'applied'],
    ['a result that cannot be spelled', async () => new Map(), {}, 'applied'],
    ['an error', throws(boom), {}, 'unknown'],
    ['a proof', throws(proof), {}, 'not_applied'],
    ['an error that is one', throws(boom), { errorsMean: 'not_applied' }, 'not_applied'],
  ])('what %s means, once', async (_, perform, options, told) => {
    expect((await ended(new SqliteDestination(), perform, options)).told).toEqual([told])
  })

  it('nothing where there is none, and nobody is warned', async () => {
    const warned = vi.spyOn(process, 'emitWarning')
    onTestFinished(() => warned.mockRestore())
    await new SqliteDestination().guard.effect(intent(1, 'x'), async () => 1)
    expect(warned).not.toHaveBeenCalled()
  })

  it('that an effect without an id took place, of which no record is left', async () => {
    const told: string[] = []
    const onEnded = (end: string) => void told.push(end)
    await new SqliteDestination().guard.effect(intent(1), async () => 1, { onEnded })
    expect(told).toEqual(['applied'])
  })

  it('of a rerun that proves that it did nothing what is on record: unknown', async () => {
    const d = new SqliteDestination()
    await ended(d, throws(boom))
    expect((await ended(d, throws(proof), { onUnknown: 'rerun' })).told).toEqual(['unknown'])
    const fresh = await ended(new SqliteDestination(), throws(proof), { onUnknown: 'rerun' })
    expect(fresh.told).toEqual(['not_applied'])
  })

  it.each([throws(proof), async () => 'r'])(
    'of one that an operator has settled meanwhile that it is not known',
    async (end) => {
      const d = new SqliteDestination()
      const operation = { jobId: 'job', operationId: 'x' }
      const perform = async () => {
        await vi.waitFor(() => d.guard.resolve(operation, { status: 'applied' }))
        return end()
      }
      expect((await ended(d, perform, { deadlineMs: 1 })).told).toEqual(['unknown'])
    },
  )

  it('of one that will be rerun, since it could not be settled, that it is not known', async () => {
    const { guard, plan } = faultyDestination()
    plan('pass', 'before')
    const { told, error } = await ended({ guard }, async () => 'r', { onUnknown: 'rerun' })
    expect(error).toMatchObject({ code: 'outcome_unknown' })
    expect(told).toEqual(['unknown'])
  })

  it.each<[string, () => Promise<unknown>]>([
    ['applied', async () => 'r'],
    ['unknown', throws(boom)],
    ['not_applied', throws(proof)],
  ])('%s of one that runs unguarded, too', async (told, perform) => {
    const { guard, plan } = faultyDestination({ dangerouslyFailOpen: true })
    plan('before')
    expect((await ended({ guard }, perform)).told).toEqual([told])
  })

  it('nothing where no effect began', async () => {
    const d = new SqliteDestination()
    await ended(d, async () => 'r')
    expect((await ended(d, async () => 'r')).told).toEqual([])
    await d.guard.seal(intent(1).token)
    expect(await ended(d, async () => 'r', {}, 'y')).toMatchObject({
      told: [],
      error: { code: 'sealed' },
    })
  })
})

describe('onEnded', () => {
  it.each([
    () => {
      throw boom
    },
    () => Promise.reject(boom),
  ])('cannot change what the caller gets: what it throws is a warning', async (onEnded) => {
    const warned = once(process, 'warning')
    const { guard } = new SqliteDestination()
    const outcome = await guard.effect(intent(1, 'x'), async () => 'r', { onEnded })
    expect(outcome).toMatchObject({ status: 'applied', result: 'r' })
    const [warning] = await warned
    expect(warning).toMatchObject({ code: 'WRITEFENCE_ON_ENDED' })
    expect(String(warning)).toContain('onEnded threw: Error: boom')
  })

  it('that is no function is refused, and nothing runs', async () => {
    const { guard } = new SqliteDestination()
    const never = async () => expect.fail('it ran')
    const call = guard.effect(intent(1, 'x'), never, { onEnded: 'applied' as never })
    expect(await failure(call)).toEqual(new TypeError('onEnded must be a function'))
  })
})
