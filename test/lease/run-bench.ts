/** One worker on a scripted store, under fake timers: what it does, and what it leaves behind. */

import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, expect, vi } from 'vitest'
import {
  type HeldLease,
  type LeaseEvent,
  type RunOptions,
  type RunOutcome,
  runWithLease,
} from 'writefence'
import { ScriptedLeaseStore } from './scripted-lease-store.ts'

export const TTL = 30_000
/** The deadline of a lease of that ttl: the margin is a second. */
export const DEADLINE = TTL - 1_000

export interface RunBench {
  store: ScriptedLeaseStore
  events: LeaseEvent[]
  names(): string[]
  run<R>(
    options: Partial<RunOptions>,
    handler: (lease: HeldLease) => R | Promise<R>,
  ): Promise<RunOutcome<R>>
}

/** Sets the bench up for each test, and checks after each that nothing goes on. */
export function runBench(): RunBench {
  let underWay = 0
  const bench: RunBench = {
    store: new ScriptedLeaseStore(),
    events: [],
    names: () => bench.events.map(({ event }) => event),
    async run(options, handler) {
      const onEvent = (event: LeaseEvent) => void bench.events.push(event)
      const all = { jobId: 'j', owner: 'w', ttlMs: TTL, onEvent, ...options }
      underWay += 1
      try {
        return await runWithLease(bench.store, all, handler)
      } finally {
        const { signal } = options
        if (signal !== undefined) expect(getEventListeners(signal, 'abort')).toEqual([])
        underWay -= 1
        if (underWay === 0 && vi.isFakeTimers())
          expect(vi.getTimerCount()).toBe(bench.store.waiting)
      }
    },
  }
  beforeEach(() => {
    vi.useFakeTimers()
    bench.store = new ScriptedLeaseStore()
    bench.events = []
    underWay = 0
  })
  afterEach(() => {
    vi.useRealTimers()
  })
  return bench
}

/** The promise, with the time that passes until it settles; fails where it never does. */
export async function settled<T>(promise: Promise<T>, withinMs = 20 * TTL): Promise<T> {
  let done = false
  const watched = promise.finally(() => {
    done = true
  })
  watched.catch(() => {})
  for (let passed = 0; !done && passed < withinMs; passed += 50) {
    await vi.advanceTimersByTimeAsync(50)
  }
  expect(done, 'it never settles').toBe(true)
  return watched
}
