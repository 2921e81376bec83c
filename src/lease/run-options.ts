/** What a run takes, checked at once, with defaults that follow from the ttl. */

import type { LeaseEvent } from '../events.ts'
import { checkChoice, checkDuration, checkOptionNames, type OptionNames } from '../options.ts'
import { checkId } from '../token.ts'
import type { Fetch } from './lease-fetch.ts'
import type { Destination } from './takeover.ts'

/** What {@link runWithLease} is told; only the first three are required. */
export interface RunOptions {
  readonly jobId: string
  /** Who works, for people: it need not be unique, and gives no right to the lease. */
  readonly owner: string
  /** How long the lease lasts without renewal, in milliseconds: 1 to 366 days. */
  readonly ttlMs: number
  /** Asks the run to stop: the handler's signal aborts, and the lease is given back after it. */
  readonly signal?: AbortSignal | undefined
  /** Where the job's writes go: fenced, and waited for, before the handler starts. */
  readonly destinations?: readonly Destination[] | undefined
  /** `'complete'`, unless told, ends the job for good; `'release'` is for jobs that recur. */
  readonly settle?: 'complete' | 'release' | undefined
  /** Is told every step. What it throws is a process warning and changes nothing. */
  readonly onEvent?: ((event: LeaseEvent) => void) | undefined
  /** What `lease.fetch` sends with; the global `fetch` unless told. */
  readonly fetch?: Fetch | undefined
  /**
   * How much earlier than its ttl the lease counts as over, in milliseconds: for clocks that run
   * at different speeds, and for the way of a write to its destination. A tenth of the ttl, at
   * most a second, unless told; below the ttl.
   */
  readonly marginMs?: number | undefined
  /** From one renewal to the next, in milliseconds; a third of the ttl unless told. */
  readonly renewEveryMs?: number | undefined
  /**
   * How long the store is waited for to answer the claim, in milliseconds; 30 seconds unless told,
   * and never longer than the lease could last.
   */
  readonly claimTimeoutMs?: number | undefined
  /**
   * How long one answer of the store or of a destination is waited for, in milliseconds; a quarter
   * of the ttl, at most 10 seconds, unless told. A renewal is then sent again.
   */
  readonly requestTimeoutMs?: number | undefined
  /** How long completing is tried, in ms; 5 seconds unless told. Releasing is tried once. */
  readonly settleTimeoutMs?: number | undefined
  /** How long older operations at the destinations are waited for; 60 seconds unless told. */
  readonly takeoverTimeoutMs?: number | undefined
  /**
   * How long the lease is still renewed once `signal` has aborted, in milliseconds; the ttl unless
   * told. A handler that has not settled by then keeps its lease until it runs out, no longer.
   */
  readonly graceMs?: number | undefined
  /** How long `lease.fetch` repeats what may yet succeed, in milliseconds; 30 s unless told. */
  readonly retryForMs?: number | undefined
}

/** Checked options, defaults filled in. */
export type RunPlan = ReturnType<typeof checkRunOptions>

// Long leases are renewed a few times an hour: it costs nothing, and shows an outage early.
const LONGEST_RENEWAL_MS = 15 * 60 * 1000
const LONGEST_REQUEST_MS = 10_000

const NAMES = {
  jobId: true,
  owner: true,
  ttlMs: true,
  signal: true,
  destinations: true,
  settle: true,
  onEvent: true,
  fetch: true,
  marginMs: true,
  renewEveryMs: true,
  claimTimeoutMs: true,
  requestTimeoutMs: true,
  settleTimeoutMs: true,
  takeoverTimeoutMs: true,
  graceMs: true,
  retryForMs: true,
} satisfies OptionNames<RunOptions>

/** @throws TypeError or RangeError naming the option */
export function checkRunOptions(options: RunOptions) {
  checkOptionNames(options, NAMES)
  const { signal, destinations = [], onEvent, fetch } = options
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new TypeError('signal must be an AbortSignal')
  }
  checkDestinations(destinations)
  for (const [name, value] of Object.entries({ onEvent, fetch })) {
    if (value !== undefined && typeof value !== 'function') {
      throw new TypeError(`${name} must be a function`)
    }
  }
  const duration = (name: keyof RunOptions, otherwise: number, min = 1) =>
    checkDuration(name, options[name] === undefined ? otherwise : options[name], min)
  const ttlMs = checkDuration('ttlMs', options.ttlMs)
  const marginMs = duration('marginMs', Math.min(Math.floor(ttlMs / 10), 1_000), 0)
  if (marginMs >= ttlMs) throw new RangeError('marginMs must be below ttlMs')
  const third = Math.min(Math.max(Math.floor(ttlMs / 3), 1), LONGEST_RENEWAL_MS)
  const renewEveryMs = duration('renewEveryMs', third)
  if (options.renewEveryMs !== undefined && renewEveryMs >= ttlMs - marginMs) {
    throw new RangeError('renewEveryMs must be below ttlMs - marginMs')
  }
  const quarter = Math.min(Math.max(Math.floor(ttlMs / 4), 1), LONGEST_REQUEST_MS)
  return {
    jobId: checkId('jobId', options.jobId),
    owner: checkId('owner', options.owner),
    ttlMs,
    marginMs,
    renewEveryMs,
    // Several tries fit between the first renewal that fails and the deadline.
    retryEveryMs: Math.min(Math.max(Math.floor(renewEveryMs / 4), 1), LONGEST_REQUEST_MS),
    requestTimeoutMs: duration('requestTimeoutMs', quarter),
    claimTimeoutMs: duration('claimTimeoutMs', 30_000),
    settleTimeoutMs: duration('settleTimeoutMs', 5_000),
    takeoverTimeoutMs: duration('takeoverTimeoutMs', 60_000),
    graceMs: duration('graceMs', ttlMs, 0),
    retryForMs: duration('retryForMs', 30_000, 0),
    settle: checkChoice('settle', options.settle, ['complete', 'release']),
    signal,
    destinations: [...destinations],
    onEvent,
    fetch,
  }
}

function checkDestinations(destinations: unknown): void {
  if (!Array.isArray(destinations)) throw new TypeError('destinations must be an array')
  destinations.forEach((each: unknown, i) => {
    const advance = (each as Partial<Destination> | null | undefined)?.advance
    if (typeof advance !== 'function') {
      throw new TypeError(`destinations[${i}] must have a method advance(token)`)
    }
  })
}
