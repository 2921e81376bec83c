import { afterEach, describe, expect, it, vi } from 'vitest'
import { type WriteGuard, WriteRefusedError } from 'writefence'
import { failure, intent, refused } from '../../src/conformance/fence-destination.ts'
import { faultyDestination } from '../support/faulty-destination.ts'
import { cause } from '../support/faulty-store.ts'
import { published, SqliteDestination } from '../support/sqlite-destination.ts'

afterEach(() => vi.useRealTimers())

const never = async () => expect.fail('the effect ran where it must not')
const boom = new Error('boom')

describe('an effect is given', () => {
  it('its token and its operation id, to pass on', async () => {
    const { guard } = new SqliteDestination()
    const given = await guard.effect(intent(3, 'x'), async ({ token, operationId }) => ({
      ...token,
      operationId,
    }))
    expect(given.result).toEqual({ jobId: 'job', generation: 3, leaseId: 'a', operationId: 'x' })
  })

  it('an id of its own where the caller has none, another each time', async () => {
    const { guard } = new SqliteDestination()
    const ids = [1, 2].map(() => guard.effect(intent(3), async ({ operationId }) => operationId))
    const [one, two] = (await Promise.all(ids)).map(({ result }) => result)
    expect(one).toMatch(/^unnamed-/)
    expect(one).not.toBe(two)
  })

  it('a signal that aborts at its deadline, and not before', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { guard } = new SqliteDestination()
    let start: (signal: AbortSignal) => void = () => {}
    const started = new Promise<AbortSignal>((resolve) => {
      start = resolve
    })
    const call = guard.effect(
      intent(3, 'x'),
      ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason))
          start(signal)
        }),
      { deadlineMs: 100 },
    )
    const failed = failure(call)
    const signal = await started
    vi.advanceTimersByTime(99)
    expect(signal.aborted).toBe(false)
    vi.advanceTimersByTime(1)
    expect(signal.aborted).toBe(true)
    const message = 'past its deadline of 100 ms'
    expect(await failed).toMatchObject({ name: 'TimeoutError', message })
    expect(vi.getTimerCount()).toBe(0)
  })

  it.each([undefined, 1000])('no timer that outlives it (deadlineMs %j)', async (deadlineMs) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { guard } = new SqliteDestination()
    await guard.effect(intent(3, 'x'), async () => 1, { deadlineMs })
    await failure(guard.effect(intent(3, 'y'), async () => Promise.reject(boom), { deadlineMs }))
    expect(vi.getTimerCount()).toBe(0)
  })

  it('no timer where its deadline is beyond what timers can count', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { guard } = new SqliteDestination()
    const timers: number[] = []
    const perform = async ({ signal }: { signal: AbortSignal }) => {
      timers.push(vi.getTimerCount())
      return signal.aborted
    }
    for (const deadlineMs of [2 ** 31 - 1, 2 ** 31]) {
      const { result } = await guard.effect(intent(3), perform, { deadlineMs })
      expect(result).toBe(false)
    }
    expect(timers).toEqual([1, 0])
  })

  it('the deadline of its guard where it names none', async () => {
    let time = 0
    const d = new SqliteDestination(undefined, { now: () => time, deadlineMs: 50 })
    const hang = () => new Promise<never>(() => {})
    void d.guard.effect(intent(1, 'x'), hang)
    void d.guard.effect(intent(1, 'y'), hang, { deadlineMs: 70 })
    await refused(d.guard.effect(intent(1, 'x'), never), 'in_flight', { retryAfterMs: 50 })
    await refused(d.guard.effect(intent(1, 'y'), never), 'in_flight', { retryAfterMs: 70 })
    time = 50
    await refused(d.guard.effect(intent(1, 'x'), never), 'outcome_unknown')
  })
})

describe('an effect that throws', () => {
  it('at once, not from a promise, is unknown all the same', async () => {
    const { guard } = new SqliteDestination()
    const call = guard.effect(intent(1, 'x'), () => {
      throw boom
    })
    expect(await failure(call)).toBe(boom)
    await refused(guard.effect(intent(1, 'x'), never), 'outcome_unknown')
  })

  it('and whose settling fails: the caller gets his own error, subscribers the other', async () => {
    const { guard, plan, faults } = faultyDestination()
    plan('pass', 'before')
    expect(await failure(guard.effect(intent(1, 'x'), () => Promise.reject(boom)))).toBe(boom)
    const fault = { fault: 'settle_failed', jobId: 'job', generation: 1, operationId: 'x' }
    expect(faults).toMatchObject([{ ...fault, error: { cause } }])
    await refused(guard.effect(intent(1, 'x'), never), 'in_flight')
  })
})

describe('a result that cannot be spelled', () => {
  it('is recorded as done without it, since running again would be worse', async () => {
    const { guard } = new SqliteDestination()
    const call = guard.effect(intent(1, 'x'), async () => new Date(0))
    expect(await failure(call)).toBeInstanceOf(TypeError)
    const again = await guard.effect(intent(1, 'x'), never)
    expect(again).toMatchObject({ status: 'replayed', result: undefined })
  })

  it.each([
    [new Map(), 'result is an instance of Map, which'],
    [1n, 'result is bigint, which'],
  ])(
    'is told together with what it must not hide: the effect took place (%#)',
    async (value, what) => {
      const { guard } = new SqliteDestination()
      const error = await failure(guard.effect(intent(1, 'x'), async () => value))
      expect(error).toBeInstanceOf(TypeError)
      expect((error as Error).message).toContain(what)
      expect((error as Error).message).toMatch(
        / \(the effect took place, and is recorded without a result\)$/,
      )
      expect((error as Error).cause).toBeInstanceOf(TypeError)
    },
  )

  it('claims no record where there is none', async () => {
    const { guard, plan } = faultyDestination()
    plan('pass', 'before')
    const error = await failure(guard.effect(intent(1, 'x'), async () => new Map()))
    expect(error).toBeInstanceOf(TypeError)
    expect((error as Error).message).toMatch(
      /\(the effect took place, and could not be recorded\)$/,
    )
    await refused(guard.effect(intent(1, 'x'), never), 'in_flight')
  })

  it('whatever the codec throws: not even nothing is taken for a result', async () => {
    const codec = {
      encode: () => {
        throw undefined
      },
      decode: JSON.parse,
    }
    const { guard } = new SqliteDestination(undefined, { codec })
    const error = await failure(guard.effect(intent(1, 'x'), async () => 1))
    expect(error).toBeInstanceOf(TypeError)
    expect((error as Error).message).toContain('the effect took place')
  })

  it('does not matter where there is no operation id to replay it to', async () => {
    const { guard } = new SqliteDestination()
    const { result } = await guard.effect(intent(1), async () => new Date(0))
    expect(result).toEqual(new Date(0))
  })
})

describe('a resolver', () => {
  async function unknown(guard: WriteGuard<unknown, 'sync'>) {
    await failure(guard.effect(intent(1, 'x'), () => Promise.reject(boom)))
  }

  it('is told whose operation it is about', async () => {
    const { guard } = new SqliteDestination()
    await unknown(guard as never)
    const onUnknown = vi.fn(async () => ({ status: 'unknown' }) as const)
    await refused(guard.effect(intent(2, 'x'), never, { onUnknown }), 'outcome_unknown')
    const { token } = intent(2)
    expect(onUnknown.mock.calls).toEqual([[{ token, operationId: 'x' }]])
  })

  it('that throws: its error reaches the caller, the outcome stays unknown', async () => {
    const { guard } = new SqliteDestination()
    await unknown(guard as never)
    const onUnknown = () => Promise.reject(boom)
    expect(await failure(guard.effect(intent(1, 'x'), never, { onUnknown }))).toBe(boom)
    await refused(guard.effect(intent(1, 'x'), never), 'outcome_unknown')
  })

  it.each([{ status: 'maybe' }, {}, true])('that answers %j is a TypeError', async (finding) => {
    const { guard } = new SqliteDestination()
    await unknown(guard as never)
    const onUnknown = async () => finding as never
    const error = await failure(guard.effect(intent(1, 'x'), never, { onUnknown }))
    expect(error).toBeInstanceOf(TypeError)
    expect((error as Error).message).toMatch(/^onUnknown must answer 'applied', 'not_applied' or/)
    await refused(guard.effect(intent(1, 'x'), never), 'outcome_unknown')
  })

  it('that finds what cannot be spelled is a TypeError, the outcome stays unknown', async () => {
    const { guard } = new SqliteDestination()
    await unknown(guard as never)
    const onUnknown = async () => ({ status: 'applied', result: new Date(0) }) as never
    const call = guard.effect(intent(1, 'x'), never, { onUnknown })
    expect(await failure(call)).toBeInstanceOf(TypeError)
    await refused(guard.effect(intent(1, 'x'), never), 'outcome_unknown')
  })
})

describe('what is no effect or no option of one is refused, before anything is reserved', () => {
  const cases: [says: string, (guard: WriteGuard<unknown, 'sync'>) => Promise<unknown>][] = [
    ['perform must be a function', (guard) => guard.effect(intent(1, 'x'), 'x' as never)],
    ['onUnknown', (guard) => guard.effect(intent(1), never, { onUnknown: 'retry' as never })],
    ['errorsMean', (guard) => guard.effect(intent(1), never, { errorsMean: 'applied' as never })],
    ['afterOverdue', (guard) => guard.effect(intent(1), never, { afterOverdue: 'go' as never })],
    ['deadlineMs', (guard) => guard.effect(intent(1), never, { deadlineMs: '1' as never })],
    ['token', (guard) => guard.effect({ token: null as never }, never)],
  ]
  it.each(cases)('%s', async (says, call) => {
    const { guard } = new SqliteDestination()
    const error = await failure(call(guard as never))
    expect(error).toBeInstanceOf(TypeError)
    expect((error as Error).message).toContain(says)
    expect(await guard.inspect('job')).toBeUndefined()
  })
})

it('what an effect is by default can be said', async () => {
  const { guard } = new SqliteDestination()
  const said = { onUnknown: 'refuse', errorsMean: 'unknown', afterOverdue: 'refuse' } as const
  const enforced = { ...intent(1, 'x'), mode: 'enforce' } as const
  expect(await failure(guard.effect(enforced, () => Promise.reject(boom), said))).toBe(boom)
  await refused(guard.effect(enforced, never, said), 'outcome_unknown')
})

describe("mode 'report'", () => {
  it('runs a refused effect, records nothing, and tells what it would have said', async () => {
    const { guard } = new SqliteDestination()
    await guard.advance(intent(5).token)
    const decisions = published('decision')
    const report = { ...intent(4, 'x'), mode: 'report' } as const
    expect(await guard.effect(report, async () => 'ran')).toEqual({
      status: 'applied',
      result: 'ran',
      appliedGeneration: 4,
      highestGeneration: 5,
    })
    expect(decisions).toMatchObject([{ verb: 'effect', decision: 'stale', reportOnly: true }])
    expect(await guard.inspect('job')).toMatchObject({ highestGeneration: 5, inFlight: 0 })
    await refused(guard.effect(intent(4, 'x'), never), 'stale', { operationApplied: false })
  })

  it('guards as usual what nothing speaks against', async () => {
    const { guard } = new SqliteDestination()
    const report = { ...intent(4, 'x'), mode: 'report' } as const
    expect((await guard.effect(report, async () => 'r')).status).toBe('applied')
    expect((await guard.effect(intent(4, 'x'), never)).status).toBe('replayed')
    await refused(guard.effect(intent(3, 'y'), never), 'stale')
  })
})

it('an effect without an operation id is told nothing of an operation', async () => {
  const { guard } = new SqliteDestination()
  await guard.advance(intent(5).token)
  const error = await failure(guard.effect(intent(4), never))
  expect(error).toBeInstanceOf(WriteRefusedError)
  expect(error).toMatchObject({
    code: 'stale',
    operationId: undefined,
    operationApplied: undefined,
  })
})
