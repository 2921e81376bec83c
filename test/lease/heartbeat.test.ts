import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { StoreUnavailableError } from 'writefence'
import type { LeaseLostError } from '../../src/errors.ts'
import { Deadline, instant } from '../../src/lease/deadline.ts'
import { startHeartbeat, watchDeadline } from '../../src/lease/heartbeat.ts'
import { Holding } from '../../src/lease/holding.ts'
import { never, ScriptedLeaseStore } from './scripted-lease-store.ts'

const TTL = 30_000
const pace = { renewEveryMs: 10_000, retryEveryMs: 2_500, requestTimeoutMs: 7_500 }

let store: ScriptedLeaseStore
let holding: Holding
let losses: LeaseLostError[]
let events: string[]
let errors: unknown[]
let stops: (() => void)[]

beforeEach(() => {
  vi.useFakeTimers()
  store = new ScriptedLeaseStore()
})
afterEach(() => {
  for (const stop of stops) stop()
  // All timers that are left are those of a script that still waits.
  expect(vi.getTimerCount()).toBe(store.waiting)
  vi.useRealTimers()
})

async function begin(steps = pace): Promise<void> {
  const sent = instant()
  const answer = await store.claim({ jobId: 'j', owner: 'w', ttlMs: TTL })
  if (answer.status !== 'claimed') throw new Error(answer.status)
  losses = []
  events = []
  errors = []
  stops = []
  holding = new Holding(answer.lease, new Deadline(sent, TTL), (error) => {
    losses.push(error)
    for (const stop of stops) stop()
  })
  const report: Parameters<typeof startHeartbeat>[3] = ({ event, error }) => {
    events.push(event)
    if (error !== undefined) errors.push(error)
  }
  stops.push(startHeartbeat(store, holding, steps, report))
  stops.push(watchDeadline(holding))
}

const renewals = () => store.calls.filter((call) => call.verb === 'renew').map((call) => call.at)

describe('the heartbeat', () => {
  it('R37: renews every third of the ttl, so that the lease never ends', async () => {
    await begin()
    const start = Date.now()
    await vi.advanceTimersByTimeAsync(5 * TTL)
    expect(losses).toEqual([])
    expect(renewals().map((at) => at - start)).toEqual(
      Array.from({ length: 15 }, (_, i) => (i + 1) * 10_000),
    )
    expect(holding.lease.generation).toBe(1)
    expect(await store.get('j')).toMatchObject({ generation: 1, status: 'leased', expired: false })
  })

  it('counts the next renewal, and the deadline, from the sending of the last one', async () => {
    await begin()
    store.script.renew = async (carryOut) => {
      await store.wait(4_000)
      return carryOut()
    }
    const start = Date.now()
    await vi.advanceTimersByTimeAsync(14_000)
    expect(holding.remainingMs()).toBe(TTL - 4_000)
    await vi.advanceTimersByTimeAsync(6_000)
    expect(renewals().map((at) => at - start)).toEqual([10_000, 20_000])
  })

  it('R26: a renewal that fails is told and tried again', async () => {
    await begin()
    store.script.renew = (carryOut, call) => {
      if (call === 1) throw new TypeError('fetch failed')
      return carryOut()
    }
    const start = Date.now()
    await vi.advanceTimersByTimeAsync(25_000)
    expect(events).toEqual(['renewal_failed', 'renewed', 'renewed'])
    expect(renewals().map((at) => at - start)).toEqual([10_000, 12_500, 22_500])
    expect(losses).toEqual([])
  })

  it('R124: a store that is away for half the ttl aborts nobody', async () => {
    await begin()
    const start = Date.now()
    store.script.renew = (carryOut) => {
      const at = Date.now() - start
      if (at >= 10_000 && at < 25_000) throw new StoreUnavailableError('away')
      return carryOut()
    }
    await vi.advanceTimersByTimeAsync(4 * TTL)
    expect(losses).toEqual([])
    expect(events).toContain('renewal_failed')
    expect(events.at(-1)).toBe('renewed')
  })

  it('R28: a store that fails for ever costs the lease at the deadline, unasked', async () => {
    await begin()
    store.script.renew = () => Promise.reject(new StoreUnavailableError('down'))
    await vi.advanceTimersByTimeAsync(TTL - 1)
    expect(losses).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(losses.map((loss) => loss.reason)).toEqual(['unreachable'])
    const asked = store.count('renew')
    await vi.advanceTimersByTimeAsync(10 * TTL)
    expect(store.count('renew')).toBe(asked)
  })

  it('R28: a store that hangs costs the lease at the deadline of the last answer', async () => {
    await begin()
    await vi.advanceTimersByTimeAsync(10_000)
    store.script.renew = () => never()
    await vi.advanceTimersByTimeAsync(TTL - 1)
    expect(losses).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(losses.map((loss) => loss.reason)).toEqual(['unreachable'])
  })

  it('each renewal has its own time-out, after which another one is sent', async () => {
    await begin()
    const start = Date.now()
    store.script.renew = (carryOut, call) => (call === 1 ? never() : carryOut())
    await vi.advanceTimersByTimeAsync(20_000)
    expect(renewals().map((at) => at - start)).toEqual([10_000, 20_000])
    expect(events).toEqual(['renewal_failed', 'renewed'])
    expect(errors).toEqual([new StoreUnavailableError('no answer to renew within 7500 ms')])
  })

  it('R31: there is one renewal at a time, and a late answer takes nothing back', async () => {
    await begin()
    store.script.renew = async (carryOut, call) => {
      await store.wait(call === 1 ? 6_000 : 50)
      return carryOut()
    }
    await vi.advanceTimersByTimeAsync(4 * TTL)
    expect(store.mostAtOnce).toBe(1)
    expect(losses).toEqual([])
  })

  it('an answer after its time-out moves the deadline, and starts no second series', async () => {
    await begin()
    const start = Date.now()
    store.script.renew = async (carryOut, call) => {
      // The first answer comes while the second renewal, sent at 20 s, is under way.
      await store.wait([11_000, 5_000][call - 1] ?? 0)
      return carryOut()
    }
    await vi.advanceTimersByTimeAsync(21_000)
    expect(holding.remainingMs()).toBe(TTL - 11_000)
    await vi.advanceTimersByTimeAsync(29_000)
    expect(renewals().map((at) => at - start)).toEqual([10_000, 20_000, 30_000, 40_000, 50_000])
    expect(losses).toEqual([])
  })

  it('a store that owes its answer at the deadline was out of reach', async () => {
    await begin({ ...pace, requestTimeoutMs: 10 * TTL })
    store.script.renew = () => never()
    await vi.advanceTimersByTimeAsync(TTL)
    expect(events).toEqual([])
    expect(losses.map((loss) => loss.reason)).toEqual(['unreachable'])
  })

  it('R29: a refusal is final, whatever the store says after it', async () => {
    await begin()
    store.script.renew = (carryOut, call) =>
      call === 1 ? { status: 'lost', reason: 'superseded' } : carryOut()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(losses.map((loss) => loss.reason)).toEqual(['superseded'])
    await vi.advanceTimersByTimeAsync(4 * TTL)
    expect(store.count('renew')).toBe(1)
    expect(losses).toHaveLength(1)
    expect(holding.remainingMs()).toBe(0)
    expect(() => holding.assertHeld()).toThrow(losses[0])
  })

  it('a renewal that is confirmed after the deadline revives nothing', async () => {
    await begin()
    store.script.renew = async (carryOut) => {
      await store.wait(TTL)
      return carryOut()
    }
    await vi.advanceTimersByTimeAsync(3 * TTL)
    expect(losses.map((loss) => loss.reason)).toEqual(['unreachable'])
    expect(holding.remainingMs()).toBe(0)
  })

  it('R25: the first act after a jump of the wall clock is to lose, not to renew', async () => {
    await begin()
    vi.setSystemTime(Date.now() + 60 * 60 * 1000)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(store.count('renew')).toBe(0)
    expect(losses.map((loss) => loss.reason)).toEqual(['expired'])
  })

  it.each(['superseded', 'released', 'completed', 'unknown_job'] as const)(
    'says why the store has ended the lease: %s',
    async (reason) => {
      await begin()
      store.script.renew = () => ({ status: 'lost', reason })
      await vi.advanceTimersByTimeAsync(10_000)
      expect(losses.map((loss) => loss.reason)).toEqual([reason])
    },
  )

  it('once stopped it sends nothing and hears nothing', async () => {
    await begin()
    store.script.renew = async () => {
      await store.wait(1_000)
      return { status: 'lost', reason: 'superseded' }
    }
    await vi.advanceTimersByTimeAsync(10_000)
    for (const stop of stops) stop()
    await vi.advanceTimersByTimeAsync(TTL)
    expect(store.count('renew')).toBe(1)
    expect(events).toEqual([])
    expect(losses).toEqual([])
  })

  it('once stopped it does not tell of a renewal that fails later', async () => {
    await begin()
    store.script.renew = async () => {
      await store.wait(1_000)
      throw new Error('too late')
    }
    await vi.advanceTimersByTimeAsync(10_000)
    for (const stop of stops) stop()
    await vi.advanceTimersByTimeAsync(TTL)
    expect(events).toEqual([])
  })
})
