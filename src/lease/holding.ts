/** The one state that run, heartbeat and lease object share: whether the lease is still held. */

import { LeaseLostError, type LostReason } from '../errors.ts'
import type { Deadline, Instant } from './deadline.ts'
import type { Lease } from './lease-store.ts'

export class Holding {
  readonly lease: Lease
  /** Whether the store has owed an answer since the last confirmation: it tells why we ran out. */
  unanswered = false
  readonly #deadline: Deadline
  readonly #lost = new AbortController()
  readonly #onLost: (error: LeaseLostError) => void
  #over: LeaseLostError | undefined

  constructor(lease: Lease, deadline: Deadline, onLost: (error: LeaseLostError) => void) {
    this.lease = lease
    this.#deadline = deadline
    this.#onLost = onLost
  }

  /** Aborts when the lease is lost, and only then. */
  get lostSignal(): AbortSignal {
    return this.#lost.signal
  }

  /** Milliseconds left, 0 once the lease is over. Running out is noticed here, by whoever asks. */
  remainingMs(): number {
    this.#checkDeadline()
    return this.#over === undefined ? this.#deadline.remainingMs() : 0
  }

  /** @throws LeaseLostError where the lease is over */
  assertHeld(): void {
    this.#checkDeadline()
    if (this.#over !== undefined) throw this.#over
  }

  /** The store confirmed a renewal that was sent then. It revives nothing (rule 8). */
  confirm(sent: Instant): void {
    this.#checkDeadline()
    this.unanswered = false
    this.#deadline.confirm(sent)
  }

  /** Final, and fires once: later reasons are not heard. */
  lose(reason: LostReason, cause?: unknown): void {
    if (this.#over !== undefined) return
    this.#over = new LeaseLostError(reason, this.lease, cause === undefined ? {} : { cause })
    this.#onLost(this.#over)
    this.#lost.abort(this.#over)
  }

  /**
   * The work is over: what the handler left running can no longer act on the lease. Returns the
   * loss, if the lease was lost before.
   */
  end(reason: 'completed' | 'released'): LeaseLostError | undefined {
    this.#checkDeadline()
    this.#over ??= new LeaseLostError(reason, this.lease)
    return this.#lost.signal.aborted ? this.#over : undefined
  }

  #checkDeadline(): void {
    if (this.#deadline.remainingMs() > 0) return
    this.lose(this.unanswered ? 'unreachable' : 'expired')
  }
}
