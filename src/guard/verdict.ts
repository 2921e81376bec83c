/**
 * The rule of the whole package, pure: no clock, no lease, no store (rules 11, 12 and 17).
 *
 * Fencing after Gray and Cheriton, "Leases" (SOSP 1989), and Kleppmann, "How to do distributed
 * locking" (2016): the resource itself orders writers by a number that only grows.
 */

import type { VerdictCode } from '../errors.ts'
import type { FencingToken } from '../token.ts'
import type { Fence, Holder, JobView, Operation, Pending } from './fence-store.ts'

/** The write as the verdict sees it. */
export interface WriteClaim {
  readonly token: FencingToken
  readonly operationId?: string | undefined
  readonly fingerprint?: string | undefined
  /** The unknown attempt that this caller takes over, by compare-and-set on its id. */
  readonly takes?: string | undefined
  /** Whether older operations past their deadline hold this write back; `'refuse'` unless told. */
  readonly afterOverdue?: 'refuse' | 'proceed' | undefined
}

/** What the guard decides about one write. */
export type Verdict =
  | { readonly status: 'apply'; readonly highestGeneration: number }
  | {
      readonly status: 'replay'
      readonly highestGeneration: number
      readonly appliedGeneration: number
    }
  | {
      readonly status: 'refuse'
      readonly code: VerdictCode
      readonly highestGeneration: number
      readonly operationApplied: boolean | undefined
      /** Milliseconds until the operation in the way is overdue; only with `in_flight`. */
      readonly retryAfterMs: number | undefined
    }

/** Whether a token may speak for the job, and the fence that it leaves behind if so. */
export type Admission =
  | { readonly admitted: true; readonly fence: Fence; readonly moved: boolean }
  | { readonly admitted: false; readonly code: 'stale' | 'conflict'; readonly fence: Fence }

/**
 * Compares a token with the fence. An admitted token always leaves a fence that names it: this is
 * what makes every older token stale, whatever becomes of the request (rule 12).
 */
export function admit(fence: Fence | undefined, token: FencingToken): Admission {
  const holder = holderOf(token)
  if (fence === undefined) {
    return {
      admitted: true,
      fence: { generation: token.generation, holder, sealed: false },
      moved: true,
    }
  }
  if (token.generation < fence.generation) return { admitted: false, code: 'stale', fence }
  if (token.generation > fence.generation) {
    // A seal outlives the generation that set it: only reopening ends it (rule 16).
    return {
      admitted: true,
      fence: { ...fence, generation: token.generation, holder },
      moved: true,
    }
  }
  if (fence.holder.kind === 'unbound') {
    return { admitted: true, fence: { ...fence, holder }, moved: true }
  }
  if (!sameHolder(fence.holder, holder)) return { admitted: false, code: 'conflict', fence }
  return { admitted: true, fence, moved: false }
}

/** The verdict on one write, in the order of rule 11. */
export function decide(view: JobView, write: WriteClaim): Verdict {
  const admission = admit(view.fence, write.token)
  const highestGeneration = admission.fence.generation
  const refuse = (code: VerdictCode, retryAfterMs?: number): Verdict => ({
    status: 'refuse',
    code,
    highestGeneration,
    operationApplied: wasApplied(view.operation, write),
    retryAfterMs,
  })

  if (!admission.admitted) return refuse(admission.code)
  const known = view.operation
  if (known !== undefined) {
    if (known.fingerprint !== write.fingerprint) return refuse('mismatch')
    if (known.status === 'applied') {
      return { status: 'replay', highestGeneration, appliedGeneration: known.generation }
    }
    if (known.status === 'in_flight' && !known.overdue)
      return refuse('in_flight', known.remainingMs)
    // Unknown: it goes on only for a caller who takes over this very attempt.
    if (known.attemptId !== write.takes) return refuse('outcome_unknown')
  }
  if (admission.fence.sealed) return refuse('sealed')
  const { overdue, inFlight } = view.pending
  if (write.afterOverdue !== 'proceed' && isOlder(overdue, write)) return refuse('outcome_unknown')
  if (isOlder(inFlight, write)) return refuse('in_flight', inFlight.remainingMs)
  return { status: 'apply', highestGeneration }
}

/** The holder that a token makes. */
function holderOf(token: FencingToken): Holder {
  return token.leaseId === undefined ? { kind: 'none' } : { kind: 'lease', leaseId: token.leaseId }
}

function sameHolder(a: Holder, b: Holder): boolean {
  if (a.kind === 'lease') return b.kind === 'lease' && a.leaseId === b.leaseId
  return a.kind === b.kind
}

function isOlder(pending: Pending | undefined, write: WriteClaim): pending is Pending {
  return pending !== undefined && pending.generation < write.token.generation
}

/** What a refused caller may be told of his operation: nothing where it may yet take place. */
function wasApplied(known: Operation | undefined, write: WriteClaim): boolean | undefined {
  if (write.operationId === undefined) return undefined
  if (known === undefined) return false
  if (known.status !== 'applied') return undefined
  return known.fingerprint === write.fingerprint
}
