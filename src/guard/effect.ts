/** Effects outside the destination's store: reserve durably, run, settle (rule 14). */

import { randomUUID } from 'node:crypto'
import { StoreUnavailableError } from '../errors.ts'
import { publishFault } from '../events.ts'
import type { FencingToken } from '../token.ts'
import { type Attempt, performReserved, provenBy, runEffectCallback, tellEnd } from './attempt.ts'
import { type Codec, encodeResult } from './codec.ts'
import type { FenceStore, StoreMode } from './fence-store.ts'
import { applied, type Outcome, refusal, replayed, reportRuling, unavailable } from './outcome.ts'
import { type Ruling, reserveUnit, settleUnit, type WriteOrder } from './units.ts'

/** What an effect is given to run with. */
export interface EffectContext {
  /** Aborts at the deadline. What runs on may still settle, as long as nobody took it over. */
  readonly signal: AbortSignal
  /** Pass these two on, so that the third system can refuse stale and duplicate calls itself. */
  readonly token: FencingToken
  readonly operationId: string
}

/** The operation whose outcome is to be found out. */
export interface UnknownOperation {
  readonly token: FencingToken
  readonly operationId: string
}

/** What a resolver found out. */
export type Finding<R> =
  | { readonly status: 'applied'; readonly result: R }
  | { readonly status: 'not_applied' }
  | { readonly status: 'unknown' }

/** Whether an effect took place, as far as it is known once it has ended. */
export type EffectEnd = 'applied' | 'not_applied' | 'unknown'

/** How an effect elsewhere is run, and what is done where its outcome is not known. */
export interface EffectOptions<R> {
  /** From the reservation until the operation is overdue, in milliseconds; 60 000 unless told. */
  readonly deadlineMs?: number | undefined
  /**
   * What to do where the outcome of an earlier attempt is not known. `'refuse'` unless told; a
   * function finds out; `'rerun'` runs it again. The last two are only for third systems that
   * deduplicate by operation id or check the token.
   */
  readonly onUnknown?:
    | 'refuse'
    | 'rerun'
    | ((operation: UnknownOperation) => Promise<Finding<R>>)
    | undefined
  /** What an error of the effect proves; `'unknown'` unless told. */
  readonly errorsMean?: 'unknown' | 'not_applied' | undefined
  /** `'proceed'` gives up the order: older operations past their deadline do not hold this back. */
  readonly afterOverdue?: 'refuse' | 'proceed' | undefined
  /**
   * Called where `perform` was, right before the caller gets its result or error: whether the
   * operation took place, as far as it is known now. So also where `perform` has thrown; `applied`
   * with an error is a result that cannot be spelled.
   */
  readonly onEnded?: ((ended: EffectEnd) => void) | undefined
}

/** The effect and what is needed around it, checked. */
export interface EffectPlan<Tx, Mode extends StoreMode, R> {
  readonly store: FenceStore<Tx, Mode>
  readonly codec: Codec
  readonly order: WriteOrder
  readonly perform: (context: EffectContext) => Promise<R>
  readonly deadlineMs: number
  readonly onUnknown: NonNullable<EffectOptions<R>['onUnknown']>
  readonly errorsMean: 'unknown' | 'not_applied'
  readonly onEnded: EffectOptions<R>['onEnded']
  readonly failOpen: boolean
}

export async function runEffect<Tx, Mode extends StoreMode, R>(
  plan: EffectPlan<Tx, Mode, R>,
): Promise<Outcome<R>> {
  const attempt: Attempt = {
    job: plan.order.job,
    operationId: plan.order.operationId ?? `unnamed-${randomUUID()}`,
    attemptId: randomUUID(),
    named: plan.order.operationId !== undefined,
  }
  const first = await reserve(plan, attempt, undefined)
  if (first === 'failed_open') return performUnruled(plan, attempt, plan.order.token.generation)
  const taken = await findOut(plan, attempt, first)
  if (taken === undefined) return follow(plan, attempt, first)
  // The world may have moved on while the resolver was asking: the verdict is asked again.
  const second = await reserve(plan, attempt, taken)
  if (second === 'failed_open') return performUnruled(plan, attempt, plan.order.token.generation)
  return follow(plan, attempt, second)
}

async function follow<Tx, Mode extends StoreMode, R>(
  plan: EffectPlan<Tx, Mode, R>,
  attempt: Attempt,
  ruling: Ruling,
): Promise<Outcome<R>> {
  const { verdict } = ruling
  if (verdict.status === 'apply') return performReserved(plan, attempt, ruling)
  reportRuling('effect', plan.order, ruling)
  if (plan.order.mode === 'report') return performUnruled(plan, attempt, verdict.highestGeneration)
  if (verdict.status === 'replay') return replayed(verdict, ruling, plan.codec)
  throw refusal(plan.order, verdict)
}

async function reserve<Tx, Mode extends StoreMode, R>(
  plan: EffectPlan<Tx, Mode, R>,
  attempt: Attempt,
  takes: string | undefined,
): Promise<Ruling | 'failed_open'> {
  const unit = reserveUnit<Tx, Mode>(
    { ...plan.order, operationId: attempt.operationId, takes },
    {
      attemptId: attempt.attemptId,
      deadlineMs: plan.deadlineMs,
      rerun: plan.onUnknown === 'rerun',
    },
  )
  try {
    return (await plan.store.transact(unit)).answer
  } catch (error) {
    if (!plan.failOpen || !(error instanceof StoreUnavailableError)) {
      throw unavailable(plan.order, error)
    }
    const { job, token } = plan.order
    const known = { ...job, generation: token.generation, operationId: attempt.operationId }
    publishFault({ fault: 'failed_open', ...known, error })
    return 'failed_open'
  }
}

/**
 * Asks the caller's resolver what became of the attempt that is in the way, and returns the id of
 * that attempt if there is reason to look again: `applied` was recorded and will be replayed;
 * `not_applied` lets the next look take the very attempt that was asked about, and no other.
 */
async function findOut<Tx, Mode extends StoreMode, R>(
  plan: EffectPlan<Tx, Mode, R>,
  { job, operationId }: Attempt,
  { unknownAttempt: attemptId }: Ruling,
): Promise<string | undefined> {
  if (typeof plan.onUnknown !== 'function' || attemptId === undefined) return undefined
  const finding = await plan.onUnknown({ token: plan.order.token, operationId })
  switch (finding.status) {
    case 'unknown':
      return undefined
    case 'not_applied':
      return attemptId
    case 'applied': {
      const result = encodeResult(finding.result, plan.codec)
      const unit = settleUnit<Tx, Mode>({ job, operationId, attemptId }, { ...finding, result })
      await plan.store.transact(unit).catch((error: unknown) => {
        throw unavailable(plan.order, error)
      })
      return attemptId
    }
    default:
      throw new TypeError(
        "onUnknown must answer 'applied', 'not_applied' or 'unknown' as its status",
      )
  }
}

/** Without a reservation: in report mode, or where the user has said that it may be (rule 19). */
async function performUnruled<Tx, Mode extends StoreMode, R>(
  plan: EffectPlan<Tx, Mode, R>,
  attempt: Attempt,
  highestGeneration: number,
): Promise<Outcome<R>> {
  let result: R
  try {
    result = await runEffectCallback(plan, attempt)
  } catch (error) {
    tellEnd(plan, provenBy(plan, error))
    throw error
  }
  tellEnd(plan, 'applied')
  return applied(plan.order, { highestGeneration }, result)
}
