import { describe, expect, it } from 'vitest'
import { RequestRefusedError, StoreUnavailableError, WriteGuard } from 'writefence'
import { failure, intent } from '../../src/conformance/fence-destination.ts'
import type { JobView, Unit } from '../../src/guard/fence-store.ts'
import { writeUnfenced } from '../../src/guard/unfenced.ts'
import { cause, faultyStore } from '../support/faulty-store.ts'
import { published, SqliteDestination } from '../support/sqlite-destination.ts'

const job = { scope: 's', jobId: 'job' }
const only = { evenIfFenced: false }
const always = { evenIfFenced: true }
const fenced = intent(3, 'x', { scope: 's' })

describe('a write that bears no token', () => {
  it('runs where the job has no fence, and leaves neither fence nor record', async () => {
    const d = new SqliteDestination()
    const decisions = published('decision')
    expect(await writeUnfenced(d.guard, job, d.appends('a', new Date(5)), only)).toEqual(
      new Date(5),
    )
    expect(d.log()).toEqual(['a'])
    expect(await d.guard.inspect('job', 's')).toBeUndefined()
    expect(decisions).toEqual([{ verb: 'write', decision: 'passed', ...job }])
  })

  it('is refused once the job has one, and told so', async () => {
    const d = new SqliteDestination()
    await d.write(fenced, 'fenced')
    const decisions = published('decision')
    const error = await failure(writeUnfenced(d.guard, job, d.appends('late'), only))
    expect(error).toBeInstanceOf(RequestRefusedError)
    expect(error).toMatchObject({ code: 'token_required', jobId: 'job' })
    expect(error).toMatchObject({ message: expect.stringContaining('the job has a fence') })
    expect(decisions).toEqual([
      { verb: 'write', decision: 'token_required', ...job, highestGeneration: 3 },
    ])
    expect(d.log()).toEqual(['fenced'])
  })

  it('of another scope is a write to another job', async () => {
    const d = new SqliteDestination()
    await d.write(fenced, 'fenced')
    await writeUnfenced(d.guard, { ...job, scope: '' }, d.appends('other'), only)
    expect(d.log()).toEqual(['fenced', 'other'])
  })

  it('runs beside a fence where that is said, and does not move it', async () => {
    const d = new SqliteDestination()
    await d.write(fenced, 'fenced')
    const state = await d.guard.inspect('job', 's')
    expect(await writeUnfenced(d.guard, job, d.appends('beside', 1), always)).toBe(1)
    expect(d.log()).toEqual(['fenced', 'beside'])
    expect(await d.guard.inspect('job', 's')).toEqual(state)
  })

  it('that throws is undone, and its error is its own', async () => {
    const d = new SqliteDestination()
    const decisions = published('decision')
    const boom = new Error('boom')
    const call = writeUnfenced(
      d.guard,
      job,
      (tx) => {
        d.appends('half')(tx)
        throw boom
      },
      only,
    )
    expect(await failure(call)).toBe(boom)
    expect([d.log(), decisions]).toEqual([[], []])
  })

  it('is not retryable where the store does not answer: it could take place twice', async () => {
    const d = new SqliteDestination()
    const { store, plan } = faultyStore(d.store)
    const faults = published('fault')
    plan('before')
    const error = await failure(writeUnfenced(new WriteGuard(store), job, d.appends('a'), only))
    expect(error).toBeInstanceOf(StoreUnavailableError)
    expect(error).toMatchObject({ message: 'no answer', retryable: false, cause })
    expect(faults).toEqual([{ fault: 'store_unavailable', ...job, error: expect.anything() }])
    expect(faults).toMatchObject([{ error: { cause } }])
  })

  it('keeps the error of a store that gives no cause', async () => {
    const d = new SqliteDestination()
    await d.guard.close()
    const error = await failure(writeUnfenced(d.guard, job, d.appends('a'), only))
    expect(error).toMatchObject({ code: 'store_unavailable', retryable: false })
    expect(error).toMatchObject({ cause: { code: 'store_unavailable', retryable: true } })
  })

  it('waits for the end of a transaction, and a refusal puts nothing', async () => {
    const { guard, store } = new SqliteDestination()
    const units: Unit<unknown, 'sync', unknown, unknown>[] = []
    const spied = Object.create(store, {
      transact: {
        value: (unit: (typeof units)[0]) => {
          units.push(unit)
          return store.transact(unit)
        },
      },
    })
    await writeUnfenced(new WriteGuard<unknown, 'sync'>(spied), job, () => 1, only)
    await guard.advance(fenced.token)
    expect(units).toMatchObject([{ job, insideTransaction: 'wait' }])
    const fence = { generation: 3, holder: { kind: 'none' }, sealed: false } as const
    const view: JobView = { fence, operation: undefined, pending: {}, census: undefined }
    expect(units[0]?.step(view)).toEqual({ answer: 3, action: { kind: 'none' } })
  })
})
