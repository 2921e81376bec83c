/**
 * The port of a lease store: who issues tokens.
 *
 * Every verb is one atomic step by the store's own time; contention is a value with a `status`.
 * All verbs reject with `TypeError`/`RangeError` for a bad argument (naming it) and with
 * `StoreUnavailableError` where the store is broken, closed or out of reach.
 */

import type { FencingToken } from '../token.ts'

/** Temporary ownership of a job. A lease is never a guarantee that nobody else is working. */
export interface Lease extends FencingToken {
  readonly leaseId: string
  readonly owner: string
  /** When the lease runs out, in epoch milliseconds of the store's clock. */
  readonly leaseUntil: number
  readonly ttlMs: number
}

/** What renew, complete and release match on: all four must equal the row. */
export type LeaseKey = Pick<Lease, 'jobId' | 'generation' | 'leaseId' | 'owner'>

/** Who wants which job, for how long. */
export interface ClaimRequest {
  readonly jobId: string
  readonly owner: string
  /** How long the lease lasts, in whole milliseconds: 1 to 366 days. */
  readonly ttlMs: number
  /** Random id of this acquisition, >= 128 bits. Repeating a claim with it is answered the same. */
  readonly leaseId?: string | undefined
}

/** The lease, or who has the job until when, or that it needs nobody any more. */
export type ClaimResult =
  | { readonly status: 'claimed'; readonly lease: Lease }
  | {
      readonly status: 'held'
      readonly owner: string
      readonly generation: number
      readonly leaseUntil: number
      readonly retryAfterMs: number
    }
  | { readonly status: 'completed'; readonly generation: number }

/**
 * Why a lease is no longer the caller's. `unknown_job`: this store never gave out that generation
 * of the job, as after it was restored from a backup.
 */
export type LeaseEnd = 'superseded' | 'released' | 'completed' | 'unknown_job'

/** The lease is somebody else's, or over: nothing was changed. */
export type LostResult = { readonly status: 'lost'; readonly reason: LeaseEnd }
/** `lapsed`: it had run out, and nobody had claimed the job in between. */
export type RenewResult =
  | { readonly status: 'renewed'; readonly lease: Lease; readonly lapsed: boolean }
  | LostResult
/** `lapsed`: it had run out, and nobody had claimed the job in between. */
export type CompleteResult = { readonly status: 'completed'; readonly lapsed: boolean } | LostResult
/** The job is claimable again, by this call or an earlier one of the same holder. */
export type ReleaseResult = { readonly status: 'released' } | LostResult

/** What the store remembers of a job; never a leaseId. */
export interface LeaseRecord {
  readonly jobId: string
  readonly generation: number
  readonly status: 'leased' | 'released' | 'completed'
  /** The last owner; absent once the record was pruned, or where nobody has claimed yet. */
  readonly owner?: string | undefined
  /** Only while `leased`: when the lease runs out or ran out, epoch milliseconds of the store. */
  readonly leaseUntil?: number | undefined
  readonly ttlMs?: number | undefined
  /** Only while `leased`: whether it has run out, so that the job is claimable. */
  readonly expired?: boolean | undefined
}

/** Which jobs to list; all that are asked for must hold. */
export interface LeaseQuery {
  readonly status?: LeaseRecord['status'] | undefined
  readonly owner?: string | undefined
  /** Only leases that have run out (true) or have not (false). */
  readonly expired?: boolean | undefined
  /** Jobs whose id sorts after this one, for paging. */
  readonly after?: string | undefined
  /** How many at the most, 1 to 1000; 100 unless told. */
  readonly limit?: number | undefined
}

/** Which ended leases to forget. */
export interface LeasePruneRequest {
  /** Ended that long ago, in milliseconds of the store's time; 0 or more. */
  readonly olderThanMs: number
  /** How many at the most, 1 to 10 000; 1000 unless told. */
  readonly limit?: number | undefined
}

/** Issues leases and their generations. */
export interface LeaseStore {
  /** Takes the job if it is unowned or its lease has run out, with the next generation. */
  claim(request: ClaimRequest): Promise<ClaimResult>
  /** Extends the lease to store time + ttl. Never creates, never steals. */
  renew(lease: LeaseKey & { readonly ttlMs: number }): Promise<RenewResult>
  /** Ends the job for good: it is not claimable until reopened. Repeating it changes nothing. */
  complete(lease: LeaseKey): Promise<CompleteResult>
  /** Gives the job back: claimable at once. Repeating it changes nothing. */
  release(lease: LeaseKey): Promise<ReleaseResult>
  /** What is remembered of the job, or `undefined` where it was never claimed or raised. */
  get(jobId: string): Promise<LeaseRecord | undefined>
  /** Jobs in the order of their ids (UTF-8 bytes), pruned ones left out. */
  list(query?: LeaseQuery): Promise<LeaseRecord[]>
  /** Makes sure that the next generation is above `atLeast`, ending a lease below it. */
  raise(jobId: string, atLeast: number): Promise<LeaseRecord>
  /** Takes the lease from whoever has it; `undefined` where the job is not known. */
  forceRelease(jobId: string): Promise<LeaseRecord | undefined>
  /** Makes a completed job claimable again; other jobs are left as they are. */
  reopen(jobId: string): Promise<LeaseRecord | undefined>
  /** Forgets who had ended leases; generations and completion stay (tombstones). */
  prune(request: LeasePruneRequest): Promise<{ readonly pruned: number }>
  /** Withdraws queued calls and refuses later ones; a handle of the user's own stays open. */
  close(): Promise<void>
}
