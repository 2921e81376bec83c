/** The verbs of a lease store over an engine that can do one thing: change a row under its lock. */

import type { StoreUnavailableError } from '../errors.ts'
import {
  checkAtLeast,
  checkClaim,
  checkLeaseKey,
  checkRenewal,
  newLeaseId,
} from '../lease/lease-arguments.ts'
import {
  claimRule,
  completeRule,
  forceReleaseRule,
  type LeaseRow,
  type LeaseRuling,
  raiseRule,
  releaseRule,
  renewRule,
  reopenRule,
} from '../lease/lease-rules.ts'
import type {
  ClaimRequest,
  ClaimResult,
  CompleteResult,
  LeaseKey,
  LeasePruneRequest,
  LeaseQuery,
  LeaseRecord,
  LeaseStore,
  ReleaseResult,
  RenewResult,
} from '../lease/lease-store.ts'
import { checkId } from '../token.ts'

/** A rule of `lease/lease-rules.ts` with its arguments filled in. */
export type LeaseRule<A> = (row: LeaseRow | undefined, now: number) => LeaseRuling<A>

/** Each verb is one call of `change`: an engine cannot get a rule wrong, only the lock. */
export abstract class RuledLeaseStore implements LeaseStore {
  abstract get(jobId: string): Promise<LeaseRecord | undefined>
  abstract list(query?: LeaseQuery): Promise<LeaseRecord[]>
  abstract prune(request: LeasePruneRequest): Promise<{ readonly pruned: number }>
  abstract close(): Promise<void>

  /**
   * Locks the row of the job, reads it and the time in a later statement than the lock wait, asks
   * the rule, puts what it says, and resolves with the answer once that is durable.
   */
  protected abstract change<A>(jobId: string, rule: LeaseRule<A>): Promise<A>

  async claim(request: ClaimRequest): Promise<ClaimResult> {
    const { jobId, owner, ttlMs, leaseId = newLeaseId() } = checkClaim(request)
    const answer = await this.change<ClaimResult | StoreUnavailableError>(jobId, (row, now) =>
      claimRule(row, { jobId, owner, ttlMs }, leaseId, now),
    )
    if (answer instanceof Error) throw answer
    return answer
  }

  async renew(lease: LeaseKey & { readonly ttlMs: number }): Promise<RenewResult> {
    const { ttlMs, ...key } = checkRenewal(lease)
    return this.change(key.jobId, (row, now) => renewRule(row, key, ttlMs, now))
  }

  async complete(lease: LeaseKey): Promise<CompleteResult> {
    const key = checkLeaseKey(lease)
    return this.change(key.jobId, (row, now) => completeRule(row, key, now))
  }

  async release(lease: LeaseKey): Promise<ReleaseResult> {
    const key = checkLeaseKey(lease)
    return this.change(key.jobId, (row, now) => releaseRule(row, key, now))
  }

  async raise(jobId: string, atLeast: number): Promise<LeaseRecord> {
    const id = checkId('jobId', jobId)
    const above = checkAtLeast(atLeast)
    return this.change(id, (row, now) => raiseRule(row, id, above, now))
  }

  async forceRelease(jobId: string): Promise<LeaseRecord | undefined> {
    return this.change(checkId('jobId', jobId), forceReleaseRule)
  }

  async reopen(jobId: string): Promise<LeaseRecord | undefined> {
    return this.change(checkId('jobId', jobId), reopenRule)
  }
}
