import type { FencingToken } from '../token.ts'
import type { Holding } from './holding.ts'
import { type LeaseFetchInit, leaseFetch } from './lease-fetch.ts'
import type { RunPlan } from './run-options.ts'

/**
 * The lease as the handler has it; it is a fencing token as well. Time can pass between any two
 * statements, so ask right before each effect: `lease.fetch` does, other effects do it by
 * `assertHeld()`. Even then a write may arrive late: what stops that one is the guard.
 */
export interface HeldLease extends FencingToken {
  readonly leaseId: string
  readonly owner: string
  /**
   * Aborts when the lease is lost (its reason is then the `LeaseLostError`), and when the run is
   * asked to stop (the reason that was given). After a stop the lease is still held: what has to
   * be finished can be.
   */
  readonly signal: AbortSignal
  /** Milliseconds for which the lease is sure to be held if no renewal succeeds; 0 once over. */
  remainingMs(): number
  /** @throws LeaseLostError where the lease is over, or the handler has settled */
  assertHeld(): void
  /** `fetch` under the token: see {@link leaseFetch}. It is not aborted by a stop. */
  fetch(input: string | URL | Request, init?: LeaseFetchInit): Promise<Response>
}

/** What the handler gets of a holding: nothing to renew, lose or end it by. */
export function heldLease(
  holding: Holding,
  signal: AbortSignal,
  defaults: Pick<RunPlan, 'fetch' | 'retryForMs'>,
): HeldLease {
  const { jobId, generation, leaseId, owner } = holding.lease
  return Object.freeze({
    jobId,
    generation,
    leaseId,
    owner,
    signal,
    remainingMs: () => holding.remainingMs(),
    assertHeld: () => holding.assertHeld(),
    fetch: (input: string | URL | Request, init?: LeaseFetchInit) =>
      leaseFetch(holding, defaults, input, init),
  })
}
