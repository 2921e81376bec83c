/**
 * What each verb of the guard does to a job: pure steps on what an engine has read under its lock.
 */

import { type FencingToken, MAX_GENERATION } from '../token.ts'
import { type FenceState, stateOf } from './fence-state.ts'
import type {
  Action,
  Encoded,
  Fence,
  JobKey,
  JobView,
  Returned,
  Step,
  StoreMode,
  Unit,
} from './fence-store.ts'
import {
  type Ending,
  type Known,
  type Resolution,
  resolve,
  type Settlement,
  settle,
} from './settle.ts'
import { admit, decide, type Verdict, type WriteClaim } from './verdict.ts'

/** A write intent, checked. */
export interface WriteOrder extends WriteClaim {
  readonly job: JobKey
  /** `'report'` runs the effect whatever the verdict, unrecorded where it is not `apply`. */
  readonly mode: 'enforce' | 'report'
}

/** What a write or a reservation came to, read and decided under the lock. */
export interface Ruling {
  readonly verdict: Verdict
  /** The recorded result, where the verdict is `replay`. */
  readonly recorded: string | undefined
  /** The generation that this token took the fence over from. */
  readonly tookOverFrom: number | undefined
  /** The attempt of the caller's own operation whose outcome is not known, if that refused him. */
  readonly unknownAttempt: string | undefined
  /**
   * What is known of the earlier attempt that this one runs in place of: an overdue one may still
   * take place, one that ended unknown may have. The proof of this one covers neither.
   */
  readonly earlier: 'overdue' | 'unknown' | undefined
}

/** Check, fence, record and effect in one transaction (rule 13). */
export function writeUnit<Tx, Mode extends StoreMode, R>(
  order: WriteOrder,
  effect: (tx: Tx) => Returned<Mode, Encoded<R>>,
): Unit<Tx, Mode, Ruling, R> {
  const { generation } = order.token
  return {
    job: order.job,
    operationId: order.operationId,
    insideTransaction: 'wait',
    step: (view) =>
      rule(view, order, { kind: 'apply', generation, fingerprint: order.fingerprint }),
    effect,
  }
}

/** The first half of an effect elsewhere: the operation is in flight from here (rule 14). */
export function reserveUnit<Tx, Mode extends StoreMode>(
  order: WriteOrder & { readonly operationId: string },
  attempt: { readonly attemptId: string; readonly deadlineMs: number; readonly rerun: boolean },
): Unit<Tx, Mode, Ruling> {
  return {
    job: order.job,
    operationId: order.operationId,
    insideTransaction: 'refuse',
    step(view) {
      const takes = attempt.rerun ? attemptOf(view) : order.takes
      // Nobody has said that an overdue attempt will not land. Until one of the two has ended, the
      // operation holds others back as the older one did: whatever came before it, came first.
      const earlier = attempt.rerun ? view.operation : undefined
      const beside = earlier?.status === 'in_flight'
      const generation = beside ? earlier.generation : order.token.generation
      const step = rule(view, { ...order, takes }, reservation(order, attempt, generation))
      return { ...step, answer: { ...step.answer, earlier: doubtOf(earlier) } }
    },
  }
}

function reservation(
  order: WriteOrder,
  attempt: { readonly attemptId: string; readonly deadlineMs: number },
  generation: number,
): Action {
  return {
    kind: 'put',
    operation: {
      status: 'in_flight',
      generation,
      fingerprint: order.fingerprint,
      attemptId: attempt.attemptId,
      deadlineMs: attempt.deadlineMs,
    },
  }
}

/** The second half of an effect: only the attempt that began it ends it. */
export function settleUnit<Tx, Mode extends StoreMode>(
  operation: { readonly job: JobKey; readonly operationId: string; readonly attemptId: string },
  ending: Ending,
): Unit<Tx, Mode, Settlement> {
  return {
    job: operation.job,
    operationId: operation.operationId,
    insideTransaction: 'wait',
    step(view) {
      const answer = settle(view.operation, operation.attemptId, ending)
      return { answer, action: answer.settled ? answer.action : { kind: 'none' } }
    },
  }
}

export type TokenAnswer =
  | {
      readonly admitted: true
      readonly state: FenceState
      readonly tookOverFrom: number | undefined
    }
  | {
      readonly admitted: false
      readonly code: 'stale' | 'conflict'
      readonly highestGeneration: number
    }

/** Moves the fence to the token, and seals it if told so (rules 10 and 16). */
export function advanceUnit<Tx, Mode extends StoreMode>(
  job: JobKey,
  token: FencingToken,
  seal: boolean,
): Unit<Tx, Mode, TokenAnswer> {
  return {
    job,
    census: true,
    insideTransaction: 'refuse',
    step(view) {
      const admission = admit(view.fence, token)
      if (!admission.admitted) {
        const { code, fence } = admission
        const answer = { admitted: false, code, highestGeneration: fence.generation } as const
        return { answer, action: { kind: 'none' } }
      }
      const fence = seal ? { ...admission.fence, sealed: true } : admission.fence
      const state = stateOf(job, fence, view.census ?? [])
      const answer = { admitted: true, state, tookOverFrom: previous(view.fence, fence) } as const
      // Each request of a guarded route comes by here: what stays as it is costs no commit.
      const put = admission.moved || seal ? fence : undefined
      return { answer, fence: put, action: { kind: 'none' } }
    },
  }
}

export interface ReopenAnswer {
  readonly state: FenceState | undefined
  readonly status: 'reopened' | 'open' | 'exhausted'
}

/**
 * Ends a seal: nothing of the sealed generation or below starts again (I8). A fence that is open
 * and unbound was reopened already, so that repeating the call does not outrun the lease store.
 * After the last generation there is none that could hold the fence.
 */
export function reopenUnit<Tx, Mode extends StoreMode>(job: JobKey): Unit<Tx, Mode, ReopenAnswer> {
  return {
    job,
    census: true,
    insideTransaction: 'refuse',
    step(view) {
      const current = view.fence
      if (current === undefined) {
        return { answer: { state: undefined, status: 'open' }, action: { kind: 'none' } }
      }
      const status = reopening(current)
      const fence: Fence =
        status === 'reopened'
          ? { generation: current.generation + 1, holder: { kind: 'unbound' }, sealed: false }
          : current
      const state = stateOf(job, fence, view.census ?? [])
      return { answer: { state, status }, fence, action: { kind: 'none' } }
    },
  }
}

function reopening({ generation, holder, sealed }: Fence): ReopenAnswer['status'] {
  if (!sealed && holder.kind === 'unbound') return 'open'
  return generation < MAX_GENERATION ? 'reopened' : 'exhausted'
}

/** An operator's answer to what became of an operation. */
export function resolveUnit<Tx, Mode extends StoreMode>(
  job: JobKey,
  operationId: string,
  ending: Known,
): Unit<Tx, Mode, Resolution> {
  return {
    job,
    operationId,
    insideTransaction: 'refuse',
    step(view) {
      const answer = resolve(view.operation, ending)
      return { answer, action: answer.status === 'in_flight' ? { kind: 'none' } : answer.action }
    },
  }
}

/** The one place where a verdict becomes a step: fence first, then what the verdict allows. */
function rule(view: JobView, order: WriteOrder, action: Action): Step<Ruling> {
  const verdict = decide(view, order)
  const admission = admit(view.fence, order.token)
  const known = view.operation
  const answer: Ruling = {
    verdict,
    recorded: known?.status === 'applied' ? known.result : undefined,
    tookOverFrom: admission.admitted ? previous(view.fence, admission.fence) : undefined,
    unknownAttempt: isUnknown(verdict) ? attemptOf(view) : undefined,
    earlier: undefined,
  }
  return {
    answer,
    fence: admission.admitted && admission.moved ? admission.fence : undefined,
    action: verdict.status === 'apply' ? action : unruled(order, action),
  }
}

/** In report mode a refused effect still runs, but leaves no record and disturbs none. */
function unruled(order: WriteOrder, action: Action): Action {
  const runs = order.mode === 'report' && action.kind === 'apply'
  return runs ? { ...action, unrecorded: true } : { kind: 'none' }
}

/** Of an older operation too; but then the caller's own has no attempt. */
function isUnknown(verdict: Verdict): boolean {
  return verdict.status === 'refuse' && verdict.code === 'outcome_unknown'
}

function attemptOf(view: JobView): string | undefined {
  const known = view.operation
  return known === undefined || known.status === 'applied' ? undefined : known.attemptId
}

/** Of an operation that is run again, which is never one within its deadline. */
function doubtOf(known: JobView['operation']): Ruling['earlier'] {
  if (known?.status === 'in_flight') return 'overdue'
  return known?.status === 'unknown' ? 'unknown' : undefined
}

function previous(before: Fence | undefined, after: Fence): number | undefined {
  return before !== undefined && before.generation < after.generation
    ? before.generation
    : undefined
}
