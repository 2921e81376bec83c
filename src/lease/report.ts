/** Where the steps of a run are told: the diagnostics channel, and the user's `onEvent`. */

import { inspect } from 'node:util'
import { type LeaseEvent, publishLease } from '../events.ts'

/** Tells one step of one lease. */
export type Report = (step: Omit<LeaseEvent, 'jobId' | 'owner' | 'generation'>) => void

/** What `onEvent` throws, or rejects with, is a process warning: it cannot change a decision. */
export function reporter(
  about: Pick<LeaseEvent, 'jobId' | 'owner' | 'generation'>,
  onEvent: ((event: LeaseEvent) => void) | undefined,
): Report {
  return (step) => {
    const event = { ...about, ...step }
    publishLease(event)
    if (onEvent === undefined) return
    const told = (async () => onEvent(event))()
    told.catch((error: unknown) => {
      process.emitWarning(`onEvent threw: ${inspect(error)}`, { code: 'WRITEFENCE_ON_EVENT' })
    })
  }
}
