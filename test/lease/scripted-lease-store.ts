/** A lease store in memory, by the rules of the package, whose calls a test can delay or break. */

import { newLeaseId } from '../../src/lease/lease-arguments.ts'
import {
  claimRule,
  completeRule,
  forceReleaseRule,
  type LeaseRow,
  type LeaseRuling,
  raiseRule,
  recordOf,
  releaseRule,
  renewRule,
  reopenRule,
} from '../../src/lease/lease-rules.ts'
import type {
  ClaimRequest,
  ClaimResult,
  CompleteResult,
  LeaseKey,
  LeaseRecord,
  LeaseStore,
  ReleaseResult,
  RenewResult,
} from '../../src/lease/lease-store.ts'

type Verb = 'claim' | 'renew' | 'complete' | 'release'
/** Stands in for a call: `carryOut` is what the store would have done. */
type Script = (carryOut: () => unknown, call: number) => unknown

export class ScriptedLeaseStore implements LeaseStore {
  readonly rows = new Map<string, LeaseRow>()
  /** Every call: the verb, and when, by the (fake) wall clock. */
  readonly calls: { verb: Verb; at: number; leaseId?: string | undefined }[] = []
  readonly script: Partial<Record<Verb, Script>> = {}
  /** How many calls of one verb were under way at once, at the most. */
  mostAtOnce = 0
  /** How many scripts wait. */
  waiting = 0
  #atOnce = 0

  /** For scripts: resolves after so many milliseconds of the (fake) clock. */
  async wait(ms: number): Promise<void> {
    this.waiting += 1
    await new Promise((resolve) => setTimeout(resolve, ms))
    this.waiting -= 1
  }

  count(verb: Verb): number {
    return this.calls.filter((call) => call.verb === verb).length
  }

  claim(request: ClaimRequest): Promise<ClaimResult> {
    const leaseId = request.leaseId ?? newLeaseId()
    return this.#call('claim', leaseId, () =>
      this.#apply(request.jobId, (row, now) => claimRule(row, request, leaseId, now)),
    ) as Promise<ClaimResult>
  }

  renew(lease: LeaseKey & { ttlMs: number }): Promise<RenewResult> {
    return this.#call('renew', lease.leaseId, () =>
      this.#apply(lease.jobId, (row, now) => renewRule(row, lease, lease.ttlMs, now)),
    )
  }

  complete(lease: LeaseKey): Promise<CompleteResult> {
    return this.#call('complete', lease.leaseId, () =>
      this.#apply(lease.jobId, (row, now) => completeRule(row, lease, now)),
    )
  }

  release(lease: LeaseKey): Promise<ReleaseResult> {
    return this.#call('release', lease.leaseId, () =>
      this.#apply(lease.jobId, (row, now) => releaseRule(row, lease, now)),
    )
  }

  async get(jobId: string): Promise<LeaseRecord | undefined> {
    const row = this.rows.get(jobId)
    return row && recordOf(row, Date.now())
  }

  async raise(jobId: string, atLeast: number): Promise<LeaseRecord> {
    return this.#apply(jobId, (row, now) => raiseRule(row, jobId, atLeast, now))
  }

  async forceRelease(jobId: string): Promise<LeaseRecord | undefined> {
    return this.#apply(jobId, forceReleaseRule)
  }

  async reopen(jobId: string): Promise<LeaseRecord | undefined> {
    return this.#apply(jobId, reopenRule)
  }

  async list(): Promise<LeaseRecord[]> {
    return [...this.rows.values()].map((row) => recordOf(row, Date.now()))
  }

  async prune(): Promise<{ pruned: number }> {
    return { pruned: 0 }
  }

  async close(): Promise<void> {}

  #apply<A>(jobId: string, rule: (row: LeaseRow | undefined, now: number) => LeaseRuling<A>): A {
    const { answer, put } = rule(this.rows.get(jobId), Date.now())
    if (put !== undefined) this.rows.set(jobId, put)
    return answer
  }

  async #call<A>(verb: Verb, leaseId: string | undefined, carryOut: () => A): Promise<A> {
    this.calls.push({ verb, at: Date.now(), leaseId })
    const script = this.script[verb]
    this.#atOnce += 1
    this.mostAtOnce = Math.max(this.mostAtOnce, this.#atOnce)
    try {
      return script === undefined ? carryOut() : ((await script(carryOut, this.count(verb))) as A)
    } finally {
      this.#atOnce -= 1
    }
  }
}

/** A promise that never settles: a store that hangs. */
export function never<T = never>(): Promise<T> {
  return new Promise(() => {})
}
