import { describe, expect, it } from 'vitest'
import {
  type Codec,
  type FenceStore,
  StoreUnavailableError,
  WriteGuard,
  type WriteGuardOptions,
  WriteRefusedError,
} from 'writefence'
import { failure, intent, refused } from '../../src/conformance/fence-destination.ts'
import { cause, faultyStore } from '../support/faulty-store.ts'
import { published, SqliteDestination } from '../support/sqlite-destination.ts'

describe('the options of a guard', () => {
  it.each<[string, WriteGuardOptions, string]>([
    ['a deadline of 0', { deadlineMs: 0 }, 'deadlineMs'],
    ['a deadline as text', { deadlineMs: '60' as never }, 'deadlineMs'],
    ["the text 'false'", { dangerouslyFailOpen: 'false' as never }, 'dangerouslyFailOpen'],
    ['a number', { dangerouslyFailOpen: 0 as never }, 'dangerouslyFailOpen'],
  ])('%s is refused at once, and named', (_, options, name) => {
    const { store } = new SqliteDestination()
    expect(() => new WriteGuard(store, options)).toThrow(name)
  })

  it('fail open only where that is said', () => {
    const { store, guard } = new SqliteDestination()
    expect(guard.failsOpen).toBe(false)
    expect(new WriteGuard(store, { dangerouslyFailOpen: true }).failsOpen).toBe(true)
  })
})

describe('a store that is unavailable', () => {
  it('is retryable only with an operation id, keeps the reason, tells subscribers', async () => {
    const d = new SqliteDestination()
    const { store, plan } = faultyStore(d.store)
    const guard = new WriteGuard(store)
    const faults = published('fault')
    plan('before', 'before')
    const named = await failure(guard.write(intent(1, 'x'), d.appends('x')))
    expect(named).toMatchObject({ code: 'store_unavailable', retryable: true, cause })
    const unnamed = await failure(guard.write(intent(1), d.appends('x')))
    expect(unnamed).toBeInstanceOf(StoreUnavailableError)
    expect(unnamed).toMatchObject({ message: 'no answer', retryable: false, cause })
    expect(faults).toMatchObject([
      { fault: 'store_unavailable', jobId: 'job', generation: 1, operationId: 'x' },
      { fault: 'store_unavailable', jobId: 'job', generation: 1 },
    ])
  })

  it('whose answer is lost: a retry under the operation id is replayed', async () => {
    const d = new SqliteDestination()
    const { store, plan } = faultyStore(d.store)
    const guard = new WriteGuard(store)
    plan('after')
    const call = () => guard.write(intent(1, 'x'), d.appends('x', 'r'))
    expect(await failure(call())).toBeInstanceOf(StoreUnavailableError)
    expect(await call()).toMatchObject({ status: 'replayed', result: 'r' })
    expect(d.log()).toEqual(['x'])
  })

  it('that does not run the effect it was asked for is found out', async () => {
    const { store } = new SqliteDestination()
    const lazy: FenceStore<unknown, 'sync'> = Object.create(store)
    lazy.transact = async ({ step }) => ({
      answer: step({ fence: undefined, operation: undefined, pending: {}, census: undefined })
        .answer,
      effect: undefined,
    })
    const call = new WriteGuard(lazy).write(intent(1, 'x'), () => 1)
    expect(await failure(call)).toMatchObject({ message: expect.stringContaining('did not run') })
  })

  it('that has no synchronous form refuses writeSync', () => {
    const { store } = new SqliteDestination()
    const asynchronous = Object.create(store, { transactSync: { value: undefined } })
    const guard = new WriteGuard<unknown, 'sync'>(asynchronous)
    expect(() => guard.writeSync(intent(1), () => 1)).toThrow('no writeSync')
  })
})

it('an engine whose answers come later: within resolves, provisional all the same', async () => {
  const d = new SqliteDestination()
  const later: FenceStore<typeof d.db, 'async'> = Object.create(d.store, {
    mode: { value: 'async' },
    within: {
      async value(tx, unit) {
        const ran = await unit.effect?.(tx)
        if (ran === undefined) return expect.fail('a write has an effect')
        return d.store.within(tx, { ...unit, effect: () => ran })
      },
    },
  } satisfies { mode: object; within: { value: (typeof later)['within'] } })
  const decisions = published('decision')
  d.db.exec('BEGIN IMMEDIATE')
  const apply = async (tx: typeof d.db) => d.appends('x', 'r')(tx)
  const outcome = await new WriteGuard(later).within(d.db, intent(1, 'x'), apply)
  d.db.exec('COMMIT')
  expect(outcome).toMatchObject({ status: 'applied', result: 'r' })
  expect(decisions).toMatchObject([{ verb: 'within', decision: 'applied', provisional: true }])
  expect(await d.write(intent(1, 'x'))).toMatchObject({ status: 'replayed', result: 'r' })
})

it('a result that nobody can ask for again may be anything', async () => {
  const d = new SqliteDestination()
  const { result } = await d.guard.write(intent(1), d.appends('x', new Date(5)))
  expect(result).toEqual(new Date(5))
})

describe("a codec of the user's", () => {
  const dates: Codec = {
    encode: (value) => String((value as Date).getTime()),
    decode: (text) => new Date(Number(text)),
  }

  it('spells and reads the results of writes, effects and resolutions', async () => {
    const d = new SqliteDestination(undefined, { codec: dates })
    const { guard } = d
    const calls = {
      write: () => guard.write(intent(1, 'w'), d.appends('w', new Date(5))),
      effect: () => guard.effect(intent(1, 'e'), async () => new Date(5)),
    }
    for (const call of Object.values(calls)) {
      expect(await call()).toMatchObject({ status: 'applied', result: new Date(5) })
      expect(await call()).toMatchObject({ status: 'replayed', result: new Date(5) })
    }
    await failure(guard.effect(intent(1, 'r'), () => Promise.reject(new Error('boom'))))
    const operation = { jobId: 'job', operationId: 'r' }
    await guard.resolve(operation, { status: 'applied', result: new Date(7) })
    const again = await guard.effect(intent(1, 'r'), async () => new Date(9))
    expect(again).toMatchObject({ status: 'replayed', result: new Date(7) })
  })
})

describe('reopening', () => {
  it('the last generation is refused: nothing could come after it', async () => {
    const { guard } = new SqliteDestination()
    const last = intent(999_999_999_999_999)
    await guard.seal(last.token)
    const error = await failure(guard.reopen('job'))
    expect(error).toBeInstanceOf(RangeError)
    expect(error).toMatchObject({ message: expect.stringContaining('999999999999999 of the job') })
    const state = await guard.inspect('job')
    expect(state).toMatchObject({ highestGeneration: 999_999_999_999_999, sealed: true })
    await refused(
      guard.write(last, () => 1),
      'sealed',
    )
  })

  it('tells what is still in flight', async () => {
    const { guard } = new SqliteDestination()
    void guard.effect(intent(3, 'x'), () => new Promise<never>(() => {}))
    await guard.seal(intent(3).token)
    expect(await guard.reopen('job')).toEqual({
      scope: '',
      jobId: 'job',
      highestGeneration: 4,
      holder: 'unbound',
      sealed: false,
      inFlight: 1,
      overdue: 0,
      unknown: 0,
      older: { inFlight: 1, overdue: 0 },
    })
  })

  it('to the last generation is possible', async () => {
    const { guard } = new SqliteDestination()
    await guard.seal(intent(999_999_999_999_998).token)
    const state = await guard.reopen('job')
    expect(state).toMatchObject({ highestGeneration: 999_999_999_999_999, holder: 'unbound' })
    expect(await guard.reopen('job')).toEqual(state)
  })
})

describe("mode 'report'", () => {
  it('applies what it would refuse, unrecorded, and fences nobody off', async () => {
    const d = new SqliteDestination()
    await d.write(intent(5, 'x'), 'first')
    const decisions = published('decision')
    const write = (generation: number, operationId: string, text: string) =>
      d.guard.write({ ...intent(generation, operationId), mode: 'report' }, d.appends(text, text))
    expect(await write(4, 'y', 'stale')).toEqual({
      status: 'applied',
      result: 'stale',
      appliedGeneration: 4,
      highestGeneration: 5,
    })
    expect(await write(5, 'x', 'again')).toMatchObject({ status: 'applied', result: 'again' })
    expect(decisions).toMatchObject([
      { decision: 'stale', reportOnly: true },
      { decision: 'replayed', reportOnly: true },
    ])
    expect(d.log()).toEqual(['first', 'stale', 'again'])
    const replayed = await d.write(intent(5, 'x'))
    expect(replayed).toMatchObject({ status: 'replayed', result: 'first' })
    await refused(d.write(intent(4, 'y')), 'stale', { operationApplied: false })
  })

  it('leaves an operation in flight to its own attempt', async () => {
    const d = new SqliteDestination()
    const outcome = await d.guard.effect(intent(1, 'x'), async () => {
      await d.guard.write({ ...intent(1, 'x'), mode: 'report' }, d.appends('beside'))
      return 'r'
    })
    expect(outcome.result).toBe('r')
    expect(await d.write(intent(1, 'x'))).toMatchObject({ status: 'replayed', result: 'r' })
    expect(d.log()).toEqual(['beside'])
  })

  it('guards as usual what nothing speaks against', async () => {
    const d = new SqliteDestination()
    await d.guard.write({ ...intent(5, 'x'), mode: 'report' }, d.appends('x', 'r'))
    expect(await d.write(intent(5, 'x'))).toMatchObject({ status: 'replayed', result: 'r' })
    await refused(d.write(intent(4)), 'stale')
  })
})

describe('a refusal', () => {
  it('says what is known, and never the lease of another', async () => {
    const d = new SqliteDestination()
    await d.write(intent(5, 'x', { leaseId: 'secret' }))
    const error = await failure(d.write(intent(5, 'y', { leaseId: 'b' })))
    expect(error).toBeInstanceOf(WriteRefusedError)
    expect(error).toMatchObject({
      code: 'conflict',
      retryable: false,
      jobId: 'job',
      generation: 5,
      operationId: 'y',
      highestGeneration: 5,
      operationApplied: false,
      retryAfterMs: undefined,
    })
    expect(Object.hasOwn(error as Error, 'cause')).toBe(false)
    const told = [
      JSON.stringify(error),
      String(error),
      JSON.stringify(await d.guard.inspect('job')),
    ]
    expect(told.join()).not.toContain('secret')
  })

  it('of resolve, while the operation runs, says when it will be overdue', async () => {
    let time = 0
    const d = new SqliteDestination(undefined, { now: () => time })
    void d.guard.effect(intent(3, 'x'), () => new Promise<never>(() => {}), { deadlineMs: 40 })
    const operation = { jobId: 'job', operationId: 'x' }
    await new Promise((resolve) => setImmediate(resolve))
    time = 15
    const error = await failure(d.guard.resolve(operation, { status: 'not_applied' }))
    const expected = { code: 'in_flight', retryable: true, generation: 3, retryAfterMs: 25 }
    expect(error).toMatchObject(expected)
  })
})
