import {
  checkAtLeast,
  checkClaim,
  checkLeaseKey,
  checkLeasePrune,
  checkLeaseQuery,
  checkRenewal,
  newLeaseId,
} from '../../lease/lease-arguments.ts'
import type {
  ClaimRequest,
  ClaimResult,
  CompleteResult,
  Lease,
  LeaseKey,
  LeasePruneRequest,
  LeaseQuery,
  LeaseRecord,
  LeaseStore,
  ReleaseResult,
  RenewResult,
} from '../../lease/lease-store.ts'
import { checkId } from '../../token.ts'
import { type LeaseCall, leaseAnswers, spellLeaseCall } from '../../wire/lease-messages.ts'
import { HttpService, type HttpServiceOptions, refusedToAnswer } from './http-service.ts'

/**
 * The lease store of a service that is reached over HTTP (`leaseRoutes`); `baseUrl` is where they
 * are mounted, without `/leases`. What is decided is decided there, by the time of its store.
 *
 * Each verb is one request, with a time-out of its own, and can be repeated: a claim without a
 * leaseId gets one here. `StoreUnavailableError` means that it is not known whether it was done.
 * The job ids `.` and `..` are refused with RangeError: no URL can carry them in its path.
 *
 * @throws TypeError or RangeError naming the option
 */
export class HttpLeaseStore implements LeaseStore {
  readonly #service: HttpService

  constructor(baseUrl: string | URL, options: HttpServiceOptions = {}) {
    this.#service = new HttpService(baseUrl, options)
  }

  async claim(request: ClaimRequest): Promise<ClaimResult> {
    const { leaseId = newLeaseId(), ...rest } = checkClaim(request)
    const call = { verb: 'claim', ...rest, leaseId } as const
    return this.#ask(call, (body) => {
      const answer = leaseAnswers.claim(body)
      const { jobId, owner } = rest
      if (answer.status === 'claimed') assertSame(answer.lease, { jobId, owner, leaseId })
      return answer
    })
  }

  async renew(lease: LeaseKey & { readonly ttlMs: number }): Promise<RenewResult> {
    const key = checkRenewal(lease)
    return this.#ask({ verb: 'renew', ...key }, (body) => {
      const answer = leaseAnswers.renew(body)
      if (answer.status === 'renewed') assertSame(answer.lease, key)
      return answer
    })
  }

  async complete(lease: LeaseKey): Promise<CompleteResult> {
    return this.#ask({ verb: 'complete', ...checkLeaseKey(lease) }, leaseAnswers.complete)
  }

  async release(lease: LeaseKey): Promise<ReleaseResult> {
    return this.#ask({ verb: 'release', ...checkLeaseKey(lease) }, leaseAnswers.release)
  }

  async get(jobId: string): Promise<LeaseRecord | undefined> {
    return this.#ask({ verb: 'get', jobId: checkId('jobId', jobId) }, leaseAnswers.maybeRecord)
  }

  async list(query?: LeaseQuery): Promise<LeaseRecord[]> {
    return this.#ask({ verb: 'list', ...checkLeaseQuery(query) }, leaseAnswers.list)
  }

  async raise(jobId: string, atLeast: number): Promise<LeaseRecord> {
    const raised = { jobId: checkId('jobId', jobId), atLeast: checkAtLeast(atLeast) }
    return this.#ask({ verb: 'raise', ...raised }, leaseAnswers.record)
  }

  async forceRelease(jobId: string): Promise<LeaseRecord | undefined> {
    const call = { verb: 'force-release', jobId: checkId('jobId', jobId) } as const
    return this.#ask(call, leaseAnswers.maybeRecord)
  }

  async reopen(jobId: string): Promise<LeaseRecord | undefined> {
    return this.#ask({ verb: 'reopen', jobId: checkId('jobId', jobId) }, leaseAnswers.maybeRecord)
  }

  async prune(request: LeasePruneRequest): Promise<{ readonly pruned: number }> {
    return this.#ask({ verb: 'prune', ...checkLeasePrune(request) }, leaseAnswers.prune)
  }

  async close(): Promise<void> {
    this.#service.close()
  }

  async #ask<A>(call: LeaseCall, read: (body: unknown) => A): Promise<A> {
    const answer = await this.#service.send(spellLeaseCall(call))
    if (answer.problem !== undefined) throw refusedToAnswer(answer.problem)
    try {
      return read(answer.body)
    } catch (error) {
      throw answer.unexpected(error)
    }
  }
}

/** An answer that some cache or proxy has mixed up must not make anybody a holder. */
function assertSame(lease: Lease, asked: Partial<Lease>): void {
  for (const [name, value] of Object.entries(asked)) {
    if (lease[name as keyof Lease] !== value) throw new TypeError(`${name} is another lease's`)
  }
}
