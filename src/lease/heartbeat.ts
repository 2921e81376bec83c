/** Renews a lease until it is lost or the work is over (rule 8). */

import { StoreUnavailableError } from '../errors.ts'
import type { LeaseEvent } from '../events.ts'
import { elapsedMs, instant } from './deadline.ts'
import type { Holding } from './holding.ts'
import type { LeaseStore } from './lease-store.ts'
import { later } from './waiting.ts'

export interface Pace {
  /** From the sending of one renewal to the next, in milliseconds. */
  readonly renewEveryMs: number
  /** From a renewal that failed to the next, in milliseconds. */
  readonly retryEveryMs: number
  /** How long to wait for an answer before asking again, in milliseconds. */
  readonly requestTimeoutMs: number
}

/** Notices at once when the lease runs out; returns how to stop looking. */
export function watchDeadline(holding: Holding): () => void {
  let timer: NodeJS.Timeout | undefined
  // The deadline moves while this sleeps: it looks again, and goes on for what is left.
  const look = () => {
    const leftMs = holding.remainingMs()
    if (leftMs > 0) timer = later(look, leftMs)
  }
  look()
  return () => clearTimeout(timer)
}

/**
 * Renews from now on; returns how to stop. Once stopped, no timer is left and nothing is sent, and
 * the answer to a renewal that is still out is not heard.
 */
export function startHeartbeat(
  store: LeaseStore,
  holding: Holding,
  pace: Pace,
  report: (event: Pick<LeaseEvent, 'event' | 'lapsed' | 'error'>) => void,
): () => void {
  const { jobId, owner, generation, leaseId, ttlMs } = holding.lease
  let stopped = false
  let timer: NodeJS.Timeout | undefined

  const renew = async () => {
    // After a pause of the process this comes first: renew in time, or lose (no late revival).
    if (holding.remainingMs() <= 0) return
    const sent = instant()
    let waiting = true
    const goOn = (delayMs: number) => {
      waiting = false
      clearTimeout(timer)
      timer = later(() => void renew(), delayMs)
    }
    const failed = (error: unknown) => {
      if (stopped || !waiting) return
      report({ event: 'renewal_failed', error })
      goOn(pace.retryEveryMs)
    }
    holding.unanswered = true
    timer = later(() => {
      failed(new StoreUnavailableError(`no answer to renew within ${pace.requestTimeoutMs} ms`))
    }, pace.requestTimeoutMs)
    try {
      const answer = await store.renew({ jobId, owner, generation, leaseId, ttlMs })
      if (stopped) return
      if (answer.status === 'lost') return holding.lose(answer.reason)
      // Heard even after its time-out: a slow store is not a silent one.
      holding.confirm(sent)
      report({ event: 'renewed', lapsed: answer.lapsed })
      if (waiting) goOn(pace.renewEveryMs - elapsedMs(sent))
    } catch (error) {
      failed(error)
    }
  }

  timer = later(() => void renew(), pace.renewEveryMs)
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}
