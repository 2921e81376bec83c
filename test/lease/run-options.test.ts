import { describe, expect, it, vi } from 'vitest'
import { type RunOptions, runWithLease } from 'writefence'
import { checkRunOptions } from '../../src/lease/run-options.ts'
import { ScriptedLeaseStore } from './scripted-lease-store.ts'

const good: RunOptions = { jobId: 'j', owner: 'w', ttlMs: 30_000 }

const durations = [
  null,
  -1,
  1.5,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  '30s',
  367 * 24 * 60 * 60_000,
]
const bad: [name: string, values: readonly unknown[]][] = [
  ['jobId', [undefined, '', 1, 'a\nb']],
  ['owner', [undefined, null, '', 'x'.repeat(256)]],
  ['ttlMs', [undefined, 0, ...durations]],
  ['signal', [null, {}, new AbortController()]],
  ['destinations', [null, {}, 'http://destination.example']],
  ['destinations[0]', [[{}], [null], [undefined], ['x'], [{ advance: 1 }]]],
  ['destinations[1]', [[{ advance: () => {} }, {}]]],
  ['settle', [null, 'seal', '']],
  ['onEvent', [null, {}]],
  ['fetch', [null, 'fetch']],
  ['marginMs', [30_000, ...durations]],
  ['renewEveryMs', [0, 29_000, 30_000, ...durations]],
  ['requestTimeoutMs', [0, ...durations]],
  ['claimTimeoutMs', [0, ...durations]],
  ['settleTimeoutMs', [0, ...durations]],
  ['takeoverTimeoutMs', [0, ...durations]],
  ['graceMs', durations],
  ['retryForMs', durations],
]

describe('the options of a run', () => {
  it.each(bad)('are refused by name before anything is sent: %s', async (name, values) => {
    const store = new ScriptedLeaseStore()
    const handler = vi.fn()
    for (const value of values) {
      const options = { ...good, [name.replace(/\[.*/, '')]: value } as RunOptions
      const error = await runWithLease(store, options, handler).catch((reason: unknown) => reason)
      expect(error instanceof TypeError || error instanceof RangeError, String(error)).toBe(true)
      expect((error as Error).message.slice(0, name.length + 1), String(value)).toBe(`${name} `)
    }
    expect(store.calls).toEqual([])
    expect(handler).not.toHaveBeenCalled()
  })

  it('one that is misspelled may be a check that is off: it is refused', async () => {
    const store = new ScriptedLeaseStore()
    for (const name of ['setle', 'destination', 'ttl']) {
      const options = { ...good, [name]: 'release' }
      await expect(runWithLease(store, options, () => {})).rejects.toThrow(`no option ${name}`)
    }
    expect(store.calls).toEqual([])
  })

  it('are required, and so is the handler', async () => {
    const store = new ScriptedLeaseStore()
    const anything = (value: unknown) => value as never
    for (const none of [undefined, null, 'j']) {
      const run = runWithLease(store, anything(none), () => {})
      await expect(run).rejects.toThrow(/^options must be an object, not /)
      await expect(runWithLease(store, good, anything(none))).rejects.toThrow('handler must be')
    }
    expect(store.calls).toEqual([])
  })

  it('follow from the ttl where they are not given', () => {
    expect(checkRunOptions(good)).toMatchObject({
      marginMs: 1_000,
      renewEveryMs: 10_000,
      retryEveryMs: 2_500,
      requestTimeoutMs: 7_500,
      claimTimeoutMs: 30_000,
      settleTimeoutMs: 5_000,
      takeoverTimeoutMs: 60_000,
      graceMs: 30_000,
      retryForMs: 30_000,
      settle: 'complete',
      destinations: [],
    })
  })

  it('are never 0 where a timer is set by them, however short the ttl is', () => {
    expect(checkRunOptions({ ...good, ttlMs: 1 })).toMatchObject({
      marginMs: 0,
      renewEveryMs: 1,
      retryEveryMs: 1,
      requestTimeoutMs: 1,
    })
  })

  it('R41: are bounded, however long the ttl is', () => {
    expect(checkRunOptions({ ...good, ttlMs: 366 * 24 * 60 * 60_000 })).toMatchObject({
      marginMs: 1_000,
      renewEveryMs: 15 * 60_000,
      retryEveryMs: 10_000,
      requestTimeoutMs: 10_000,
    })
  })

  it('take the ends of what is allowed', () => {
    const ends = { marginMs: 0, renewEveryMs: 29_999, graceMs: 0, retryForMs: 0 }
    expect(checkRunOptions({ ...good, ...ends })).toMatchObject(ends)
    expect(checkRunOptions({ ...good, marginMs: 29_999 }).marginMs).toBe(29_999)
  })

  it('are copied: destinations that are added later are not taken over', () => {
    const destinations: { advance(): Promise<never> }[] = []
    const plan = checkRunOptions({ ...good, destinations })
    destinations.push({ advance: () => Promise.reject(new Error('not asked')) })
    expect(plan.destinations).toEqual([])
  })
})
