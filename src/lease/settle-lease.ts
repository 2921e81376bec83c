/** How a lease ends in good order: completed, or given back (rules 2 and 9). */

import type { LostReason } from '../errors.ts'
import { elapsedMs, instant } from './deadline.ts'
import type { LeaseKey, LeaseStore } from './lease-store.ts'
import type { Report } from './report.ts'
import type { RunPlan } from './run-options.ts'
import { answerWithin, backoffMs, pause } from './waiting.ts'

/** Why the lease could not be settled: it was not ours any more, or nobody answered. */
export interface Unsettled {
  readonly reason: LostReason
  readonly error?: unknown
}

type Limits = Pick<RunPlan, 'requestTimeoutMs' | 'settleTimeoutMs'>

/**
 * Completes the job, asking again while the store does not answer: repeating it is harmless, and
 * without it the work is done once more. `undefined` once it is completed.
 */
export async function completeLease(
  store: LeaseStore,
  key: LeaseKey,
  limits: Limits,
  report: Report,
): Promise<Unsettled | undefined> {
  const began = instant()
  // Not the signal of the run, which may have aborted long since.
  const { signal } = new AbortController()
  for (let failures = 0; ; failures += 1) {
    try {
      const answer = await answerWithin(limits.requestTimeoutMs, 'complete', async () =>
        store.complete(key),
      )
      if (answer.status === 'lost') return { reason: answer.reason }
      report({ event: 'completed', lapsed: answer.lapsed })
      return undefined
    } catch (error) {
      report({ event: 'settle_failed', error })
      const waitMs = backoffMs(failures)
      const leftMs = limits.settleTimeoutMs - elapsedMs(began)
      if (leftMs <= waitMs) return { reason: 'unreachable', error }
      await pause(waitMs, signal)
    }
  }
}

/**
 * Gives the job back. Tried once: a store that is closing with the process need not be waited for,
 * since a lease that is not given back runs out. `undefined` unless the lease was not ours.
 */
export async function releaseLease(
  store: LeaseStore,
  key: LeaseKey,
  limits: Limits,
  report: Report,
): Promise<Unsettled | undefined> {
  try {
    const answer = await answerWithin(limits.requestTimeoutMs, 'release', async () =>
      store.release(key),
    )
    if (answer.status === 'lost') return { reason: answer.reason }
    report({ event: 'released' })
  } catch (error) {
    report({ event: 'settle_failed', error })
  }
  return undefined
}
