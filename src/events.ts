/**
 * What the package tells the outside, over `node:diagnostics_channel`. Nothing is computed where
 * nobody subscribes, and a subscriber that throws cannot change a decision: Node reports its error
 * as an uncaught exception on a later tick.
 */

import { channel } from 'node:diagnostics_channel'
import type { LostReason, RefusalCode } from './errors.ts'

/** One decision of a guard, published to `writefence:decision` once it is durable. */
export interface DecisionEvent {
  readonly verb:
    | 'write'
    | 'within'
    | 'effect'
    | 'advance'
    | 'seal'
    | 'reopen'
    | 'resolve'
    | 'request'
  /**
   * `failed` is an effect that threw: the fence is kept. `passed` is a request that needed no
   * verdict. Refusals have their code.
   */
  readonly decision:
    | 'applied'
    | 'replayed'
    | 'failed'
    | 'advanced'
    | 'sealed_now'
    | 'reopened'
    | 'resolved'
    | 'passed'
    | RefusalCode
  readonly scope: string
  readonly jobId?: string | undefined
  readonly generation?: number | undefined
  readonly operationId?: string | undefined
  readonly highestGeneration?: number | undefined
  /** The older generation that this call took the fence over from, if it did. */
  readonly tookOverFrom?: number | undefined
  /** The decision stands only if the user's own transaction commits. */
  readonly provisional?: true | undefined
  /** The refusal was reported, not enforced. */
  readonly reportOnly?: true | undefined
}

/** A step in the life of a lease at its worker, published to `writefence:lease`. */
export interface LeaseEvent {
  readonly event:
    | 'claimed'
    | 'held'
    | 'already_completed'
    | 'fenced'
    | 'renewed'
    | 'renewal_failed'
    | 'lost'
    | 'completed'
    | 'released'
    | 'settle_failed'
    | 'stopped'
  readonly jobId: string
  readonly owner: string
  readonly generation?: number | undefined
  readonly reason?: LostReason | undefined
  /** The lease had expired, and nobody had claimed it in between. */
  readonly lapsed?: boolean | undefined
  readonly error?: unknown
}

/** Something that a person should look at, published to `writefence:fault`. */
export interface FaultEvent {
  readonly fault:
    | 'conflict'
    | 'attempt_superseded'
    | 'settle_failed'
    | 'settled_late'
    | 'failed_open'
    | 'store_unavailable'
    | 'transaction_ended_by_callback'
    | 'unguarded_success'
    | 'not_recorded'
  readonly scope?: string | undefined
  readonly jobId?: string | undefined
  readonly generation?: number | undefined
  readonly operationId?: string | undefined
  readonly error?: unknown
}

const decisions = channel('writefence:decision')
const leases = channel('writefence:lease')
const faults = channel('writefence:fault')

/** Takes a function: on the hot path an event that nobody reads is not even built. */
export function publishDecision(event: () => DecisionEvent): void {
  if (decisions.hasSubscribers) decisions.publish(event())
}

export function publishLease(event: LeaseEvent): void {
  if (leases.hasSubscribers) leases.publish(event)
}

export function publishFault(event: FaultEvent): void {
  if (faults.hasSubscribers) faults.publish(event)
}
