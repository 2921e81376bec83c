import { describe, expect, it } from 'vitest'
import {
  type Codec,
  type FenceStore,
  StoreUnavailableError,
  WriteGuard,
  type WriteGuardOptions,
  type WriteIntent,
  WriteRefusedError,
} from 'writefence'
import { failure, intent, refused } from '../../src/conformance/fence-destination.ts'
import { cause, faultyStore } from '../support/faulty-store.ts'
import { published, SqliteDestination } from '../support/sqlite-destination.ts'

type Guard = SqliteDestination['guard']

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

describe('a malformed write is refused before the store is asked', () => {
  const good = { jobId: 'job', generation: 1 }
  const malformed: [string, unknown, string][] = [
    ['no intent', undefined, 'intent'],
    ['no token', {}, 'token'],
    ['a token that is text', { token: '7' }, 'token'],
    ['R64: a job id that is a number', { token: { ...good, jobId: 1 } }, 'jobId'],
    ['R22: generation 0', { token: { ...good, generation: 0 } }, 'generation'],
    ['R49: a generation as text', { token: { ...good, generation: '7' } }, 'generation'],
    ['R49: a BigInt', { token: { ...good, generation: 7n } }, 'generation'],
    ['R61: NaN', { token: { ...good, generation: Number.NaN } }, 'generation'],
    ['an empty leaseId', { token: { ...good, leaseId: '' } }, 'leaseId'],
    ['a null leaseId', { token: { ...good, leaseId: null } }, 'leaseId'],
    ['R67: a control character', { token: { ...good, jobId: 'a\u0000b' } }, 'jobId'],
    ['a lone surrogate', { token: { ...good, jobId: '\ud800' } }, 'jobId'],
    ['256 code points', { token: good, operationId: 'x'.repeat(256) }, 'operationId'],
    ['an empty operation id', { token: good, operationId: '' }, 'operationId'],
    ['a null operation id', { token: good, operationId: null }, 'operationId'],
    ['a fingerprint that is a number', { token: good, fingerprint: 1 }, 'fingerprint'],
    ['a scope that is null', { token: good, scope: null }, 'scope'],
    ['a mode that there is not', { token: good, mode: 'off' }, 'mode'],
  ]

  it.each(malformed)('%s', async (_, given, name) => {
    const { guard, db } = new SqliteDestination()
    const write = given as WriteIntent
    const calls = [
      () => guard.write(write, () => expect.fail('it ran')),
      () => guard.effect(write, () => expect.fail('it ran')),
      () => guard.judge(write),
      async () => guard.writeSync(write, () => expect.fail('it ran')),
      async () => guard.within(db, write, () => expect.fail('it ran')),
    ]
    for (const call of calls) {
      const error = await failure(call())
      expect(error).toSatisfy((each) => each instanceof TypeError || each instanceof RangeError)
      expect((error as Error).message).toContain(name)
    }
    expect(db.prepare('SELECT count(*) FROM writefence_fence').pluck().get()).toBe(0)
  })

  it.each<[string, (guard: Guard) => Promise<unknown>]>([
    ['advance', (guard) => guard.advance({ jobId: '', generation: 1 })],
    ['seal', (guard) => guard.seal({ jobId: 'job', generation: 1.5 })],
    ['seal, scope', (guard) => guard.seal({ jobId: 'job', generation: 1 }, 1 as never)],
    ['reopen', (guard) => guard.reopen(1 as never)],
    ['inspect', (guard) => guard.inspect('job', null as never)],
    ['unsettled', (guard) => guard.unsettled({ limit: 0 })],
    ['unsettled, scope', (guard) => guard.unsettled({ scope: 1 as never })],
    ['unsettled, job', (guard) => guard.unsettled({ jobId: '' })],
    ['unsettled, too many', (guard) => guard.unsettled({ limit: 1001 })],
    ['prune', (guard) => guard.prune({} as never)],
    ['prune, negative', (guard) => guard.prune({ olderThanMs: -1 })],
    ['prune, limit', (guard) => guard.prune({ olderThanMs: 0, limit: 10_001 })],
  ])('%s rejects, and does not throw on the stack', async (_, call) => {
    const { guard } = new SqliteDestination()
    const error = await failure(call(guard))
    expect(error).toSatisfy((each) => each instanceof TypeError || each instanceof RangeError)
  })

  it('a resolution without a status it can trust resolves nothing', async () => {
    const { guard } = new SqliteDestination()
    await failure(guard.effect(intent(1, 'x'), () => Promise.reject(new Error('boom'))))
    const operation = { jobId: 'job', operationId: 'x' }
    for (const resolution of [{}, { status: undefined }, { status: 'maybe' }, null]) {
      const call = guard.resolve(operation, resolution as never)
      expect(await failure(call)).toBeInstanceOf(TypeError)
    }
    const unspelled = guard.resolve(operation, { status: 'applied', result: new Date(0) })
    expect(await failure(unspelled)).toBeInstanceOf(TypeError)
    expect(await guard.unsettled()).toHaveLength(1)
  })

  it('what a caller changes after the call does not count', async () => {
    const d = new SqliteDestination()
    const token = { jobId: 'job', generation: 1, leaseId: 'a' }
    const write = { token, operationId: 'x' }
    const call = d.write(write, 'text')
    token.generation = 9
    write.operationId = 'y'
    expect((await call).appliedGeneration).toBe(1)
    expect(await d.guard.judge(intent(1, 'x'))).toMatchObject({ status: 'replay' })
  })
})

describe('an apply that a synchronous engine cannot run', () => {
  it('an async function is refused before it is called', async () => {
    const { guard } = new SqliteDestination()
    const apply = async () => expect.fail('it ran')
    const error = await failure(guard.write(intent(5, 'x'), apply as never))
    expect(error).toMatchObject({ name: 'TypeError', message: expect.stringContaining('async') })
    expect(await guard.inspect('job')).toBeUndefined()
  })

  it.each<[string, unknown]>([
    ['a promise', () => Promise.resolve(1)],
    ['a promise that rejects', () => Promise.reject(new Error('nobody hears it'))],
    // biome-ignore lint/suspicious/noThenProperty: a thenable is the case
    ['a thenable', () => ({ then: () => {} })],
    ['a generator', () => (function* () {})()],
  ])('one that returns %s is undone', async (_, apply) => {
    const d = new SqliteDestination()
    for (const operationId of ['x', undefined]) {
      const call = d.guard.write(intent(5, operationId), (tx) => {
        d.appends('half')(tx)
        return (apply as () => never)()
      })
      expect(await failure(call)).toBeInstanceOf(TypeError)
    }
    expect(d.log()).toEqual([])
    expect((await d.write(intent(5, 'x'))).status).toBe('applied')
  })

  it('what is no function is refused', async () => {
    const { guard } = new SqliteDestination()
    expect(await failure(guard.write(intent(1), 'apply' as never))).toBeInstanceOf(TypeError)
  })
})

describe('a store that is unavailable', () => {
  it('is retryable only with an operation id, keeps the reason, and tells subscribers', async () => {
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
    const state = await guard.inspect('job')
    expect(state).toMatchObject({ highestGeneration: 999_999_999_999_999, sealed: true })
    await refused(
      guard.write(last, () => 1),
      'sealed',
    )
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
