/** What a guard tells of a job: never a leaseId. */

import type { CensusRow, Fence, Holder, JobKey } from './fence-store.ts'

/** The fence of a job, and what is unsettled behind it. */
export interface FenceState {
  readonly scope: string
  readonly jobId: string
  /** The highest generation that this destination has seen. */
  readonly highestGeneration: number
  readonly holder: Holder['kind']
  readonly sealed: boolean
  /** Operations that have begun, not ended, and are within their deadline. */
  readonly inFlight: number
  /** Operations past their deadline that have not ended: they may still take place. */
  readonly overdue: number
  /** Operations that ended without proof of what happened. They hold nobody back. */
  readonly unknown: number
  /** Those of older generations among them: what a new holder must wait for before it reads. */
  readonly older: { readonly inFlight: number; readonly overdue: number }
}

export function stateOf(job: JobKey, fence: Fence, census: readonly CensusRow[]): FenceState {
  const count = (status: CensusRow['status'], below = Number.POSITIVE_INFINITY) =>
    census
      .filter((row) => row.status === status && row.generation < below)
      .reduce((sum, row) => sum + row.count, 0)
  return {
    scope: job.scope,
    jobId: job.jobId,
    highestGeneration: fence.generation,
    holder: fence.holder.kind,
    sealed: fence.sealed,
    inFlight: count('in_flight'),
    overdue: count('overdue'),
    unknown: count('unknown'),
    older: {
      inFlight: count('in_flight', fence.generation),
      overdue: count('overdue', fence.generation),
    },
  }
}
