/**
 * How an operation ends, pure: a compare-and-set on the attempt id (I6). Applied is absorbing.
 */

import type { Action, Operation } from './fence-store.ts'

/** What somebody knows of an operation. */
export type Known =
  | {
      readonly status: 'applied'
      readonly result: string | undefined
      /** Under which it was applied, where that is not the generation that began it. */
      readonly generation?: number | undefined
    }
  | { readonly status: 'not_applied' }

/**
 * What became of an attempt. `unknown` has ended, so that it holds nobody back; `overdue` has
 * ended, and an earlier one that it ran beside may not have.
 */
export type Ending = Known | { readonly status: 'unknown' } | { readonly status: 'overdue' }

export type Settlement =
  /** `late`: the attempt had passed its deadline, and was still the current one. */
  | { readonly settled: true; readonly late: boolean; readonly action: Action }
  | { readonly settled: false }

/** What an operator's answer did; a value, since repeating it is harmless. */
export type Resolved = { readonly status: 'resolved' | 'already_applied' | 'unknown_operation' }

/**
 * Ends the attempt that began the operation, and only that one. Time plays no part: an attempt
 * that is overdue but was not resolved or taken may still say what it did.
 */
export function settle(
  known: Operation | undefined,
  attemptId: string,
  ending: Ending,
): Settlement {
  if (known === undefined || known.status === 'applied') return { settled: false }
  if (known.attemptId !== attemptId) return { settled: false }
  const late = known.status === 'unknown' || known.overdue
  return { settled: true, late, action: record(known, ending) }
}

export type Resolution =
  | (Resolved & { readonly action: Action })
  | { readonly status: 'in_flight'; readonly generation: number; readonly remainingMs: number }

/** Ends an operation from outside; one that runs within its deadline is not touched. */
export function resolve(known: Operation | undefined, ending: Known): Resolution {
  if (known === undefined) return { status: 'unknown_operation', action: { kind: 'none' } }
  if (known.status === 'applied') return { status: 'already_applied', action: { kind: 'none' } }
  if (known.status === 'in_flight' && !known.overdue) {
    return { status: 'in_flight', generation: known.generation, remainingMs: known.remainingMs }
  }
  return { status: 'resolved', action: record(known, ending) }
}

type Unsettled = Exclude<Operation, { status: 'applied' }>

function record(known: Unsettled, ending: Ending): Action {
  const { generation, fingerprint, attemptId } = known
  switch (ending.status) {
    case 'applied':
      return {
        kind: 'put',
        operation: {
          status: 'applied',
          generation: ending.generation ?? generation,
          fingerprint,
          result: ending.result,
        },
      }
    case 'unknown':
      return { kind: 'put', operation: { status: 'unknown', generation, fingerprint, attemptId } }
    case 'overdue':
      return {
        kind: 'put',
        operation: { status: 'in_flight', generation, fingerprint, attemptId, deadlineMs: 0 },
      }
    case 'not_applied':
      return { kind: 'delete' }
  }
}
