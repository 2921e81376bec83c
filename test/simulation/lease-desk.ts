/** The lease service of a simulated world: the real store behind a desk that watches it. */

import { type Lease, type LeaseStore, StoreUnavailableError } from 'writefence'
import type { LeaseDatabase } from './databases.ts'
import type { Reply, Request } from './messages.ts'
import { TTL_MS } from './script-worker.ts'

export interface LeaseDeskOptions {
  readonly database: LeaseDatabase
  /** The store's own clock, epoch milliseconds. */
  readonly now: () => number
  /** Puts another store in place of the real one, to see whether anybody notices. */
  readonly broken?: ((store: LeaseStore) => LeaseStore) | undefined
  fail(rule: string, message: string): void
}

interface Answered {
  readonly status?: 'claimed' | 'held' | 'completed' | 'renewed' | 'released' | 'lost'
  readonly lease?: Lease
}

const CONTENDED: readonly string[] = ['claim', 'renew', 'complete', 'release']

export class LeaseDesk {
  readonly #options: LeaseDeskOptions
  readonly #store: LeaseStore
  /** Until when nobody else may have a job, by the store's clock. */
  readonly #live = new Map<string, Lease>()
  #backup: string | undefined

  constructor(options: LeaseDeskOptions) {
    const { database, now, broken = (store) => store } = options
    this.#options = options
    this.#store = broken(database.store)
    database.now = now
  }

  async serve(request: Request): Promise<Reply> {
    try {
      const value = await this.#ask(request)
      const { status, lease } = (value ?? {}) as Answered
      this.#watch(request, status, lease)
      const granted = lease && { generation: lease.generation, leaseId: lease.leaseId }
      const outcome = CONTENDED.includes(request.verb) ? (status ?? 'unknown') : 'done'
      return { outcome, ...(status === 'claimed' ? granted : {}), raw: { value } }
    } catch (error) {
      if (error instanceof StoreUnavailableError) return { outcome: 'unknown', raw: { error } }
      throw error
    }
  }

  get hasBackup(): boolean {
    return this.#backup !== undefined
  }

  async takeBackup(): Promise<void> {
    this.#backup = await this.#options.database.save()
  }

  /** All that was granted since the backup is forgotten. */
  async restore(): Promise<void> {
    if (this.#backup !== undefined) await this.#options.database.load(this.#backup)
    this.#live.clear()
  }

  async digest(): Promise<string> {
    const live = [...this.#live].sort(([a], [b]) => (a < b ? -1 : 1))
    const rows = await this.#options.database.save()
    return `${rows}\n${JSON.stringify(live)}\n${this.#backup}`
  }

  /** A live lease is taken from nobody, except by an operator. */
  #watch({ jobId, verb }: Request, status: Answered['status'], lease: Lease | undefined): void {
    const now = this.#options.now()
    const live = this.#live.get(jobId)
    if (lease !== undefined) {
      if (live !== undefined && now < live.leaseUntil && live.leaseId !== lease.leaseId) {
        const left = `which ${live.leaseId} has for ${live.leaseUntil - now} ms more`
        this.#options.fail('live_lease_taken', `${lease.leaseId} was granted ${jobId}, ${left}`)
      }
      this.#live.set(jobId, lease)
    }
    // Whoever is told `held` sees to it that it does not last longer than a ttl from now.
    if (status === 'held' && live !== undefined) {
      const leaseUntil = Math.min(live.leaseUntil, now + live.ttlMs)
      this.#live.set(jobId, { ...live, leaseUntil })
    }
    const ended = status === 'released' || (verb === 'complete' && status === 'completed')
    if (ended || verb === 'force_release' || verb === 'raise') this.#live.delete(jobId)
  }

  #ask(request: Request): Promise<unknown> {
    const {
      verb,
      jobId,
      owner = 'nobody',
      leaseId = 'none',
      generation = 1,
      ttlMs = TTL_MS,
    } = request
    const key = { jobId, owner, leaseId, generation }
    switch (verb) {
      case 'claim':
        return this.#store.claim({ jobId, owner, leaseId, ttlMs })
      case 'renew':
        return this.#store.renew({ ...key, ttlMs })
      case 'complete':
        return this.#store.complete(key)
      case 'release':
        return this.#store.release(key)
      case 'raise':
        return this.#store.raise(jobId, request.atLeast ?? 1)
      case 'force_release':
        return this.#store.forceRelease(jobId)
      case 'reopen_lease':
        return this.#store.reopen(jobId)
      default:
        throw new TypeError(`the lease service does not know ${verb}`)
    }
  }
}
