/**
 * How long a holder may act on its lease (rule 7), reckoned at the worker alone.
 *
 * A monotonic clock stands still while the machine is suspended, a wall clock can be set back: the
 * one by which more time has passed counts. Both are looked up when used, so that fake timers and
 * replaced globals are heard.
 */

/** A reading of both clocks, in milliseconds. */
export interface Instant {
  readonly monotonic: number
  readonly wall: number
}

export function instant(): Instant {
  return { monotonic: performance.now(), wall: Date.now() }
}

/** Milliseconds since then, by the clock that says more. */
export function elapsedMs(since: Instant): number {
  const now = instant()
  return Math.max(now.monotonic - since.monotonic, now.wall - since.wall)
}

/**
 * Runs from the *sending* of the request that the store confirmed: the store counts from some
 * later moment, so this ends first (Gray and Cheriton, "Leases", section 2).
 */
export class Deadline {
  readonly #lastsMs: number
  #sent: Instant

  /** `lastsMs` is ttl - margin; `sent` was read before the first request with this leaseId. */
  constructor(sent: Instant, lastsMs: number) {
    this.#sent = sent
    this.#lastsMs = lastsMs
  }

  /** Forward only: the late answer to an earlier request takes nothing back. */
  confirm(sent: Instant): void {
    if (sent.monotonic > this.#sent.monotonic) this.#sent = sent
  }

  /** Milliseconds left; 0 or less where it is over. */
  remainingMs(): number {
    return this.#lastsMs - elapsedMs(this.#sent)
  }
}
