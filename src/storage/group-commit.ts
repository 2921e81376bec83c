/**
 * Group commit (Gray and Reuter, "Transaction Processing", 1992, section 9): calls that arrive in
 * one turn of the event loop share one durable commit, and are answered after it.
 */

import { performance } from 'node:perf_hooks'
// Bound at load time: fake timers in a user's tests must not stop his database.
import { setImmediate, setTimeout } from 'node:timers'
import { StoreUnavailableError } from '../errors.ts'

/** A call that waits for its turn. The engine answers it once its group is durable. */
export interface Ticket<Work> {
  readonly work: Work
  resolve(value: unknown): void
  reject(error: unknown): void
  /** When the caller stops waiting, by the monotonic clock. */
  readonly expiresAt: number
}

/** What an engine made of the queue: it took tickets and answered them, or it could not begin. */
export type Round =
  | { readonly status: 'ran' }
  | { readonly status: 'busy'; readonly reason: unknown }

export interface GroupCommitOptions<Work> {
  /** How long a call may wait for its turn, in milliseconds. */
  readonly maxWaitMs: number
  /** Takes tickets with `queue.take()`, puts back with `queue.putBack()` what must run again. */
  readonly run: (queue: TicketQueue<Work>) => Round
}

/** The queue as an engine sees it, in arrival order. */
export interface TicketQueue<Work> {
  take(): Ticket<Work> | undefined
  putBack(tickets: readonly Ticket<Work>[]): void
}

const FIRST_RETRY_MS = 1
const LONGEST_RETRY_MS = 20

export class GroupCommit<Work> implements TicketQueue<Work> {
  readonly #options: GroupCommitOptions<Work>
  #waiting: Ticket<Work>[] = []
  #scheduled = false
  #retryMs = FIRST_RETRY_MS
  #closed = false

  constructor(options: GroupCommitOptions<Work>) {
    this.#options = options
  }

  /** Queues a call; it is settled after its group's commit, or withdrawn after `maxWaitMs`. */
  submit<T>(work: Work): Promise<T> {
    if (this.#closed) return Promise.reject(new StoreUnavailableError('the store is closed'))
    return new Promise<T>((resolve, reject) => {
      const expiresAt = performance.now() + this.#options.maxWaitMs
      this.#waiting.push({ work, resolve: resolve as (value: unknown) => void, reject, expiresAt })
      this.#schedule()
    })
  }

  take(): Ticket<Work> | undefined {
    return this.#waiting.shift()
  }

  putBack(tickets: readonly Ticket<Work>[]): void {
    this.#waiting = [...tickets, ...this.#waiting]
  }

  /** Withdraws what is queued: none of it has begun, so none of it will take place. */
  close(): void {
    this.#closed = true
    for (const ticket of this.#waiting.splice(0)) {
      ticket.reject(new StoreUnavailableError('the store was closed before the call had its turn'))
    }
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#drain())
  }

  #drain(): void {
    this.#scheduled = false
    if (this.#waiting.length === 0) return
    const round = this.#options.run(this)
    if (round.status === 'ran') {
      this.#retryMs = FIRST_RETRY_MS
      if (this.#waiting.length > 0) this.#schedule()
      return
    }
    this.#withdrawExpired(round.reason)
    if (this.#waiting.length === 0) return
    this.#scheduled = true
    setTimeout(() => this.#drain(), this.#retryMs)
    this.#retryMs = Math.min(2 * this.#retryMs, LONGEST_RETRY_MS)
  }

  #withdrawExpired(reason: unknown): void {
    const now = performance.now()
    const expired = this.#waiting.filter((ticket) => ticket.expiresAt <= now)
    this.#waiting = this.#waiting.filter((ticket) => ticket.expiresAt > now)
    for (const ticket of expired) {
      ticket.reject(
        new StoreUnavailableError(
          `the store was busy for ${this.#options.maxWaitMs} ms; the call was withdrawn`,
          { cause: reason },
        ),
      )
    }
  }
}
