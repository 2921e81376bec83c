/** What a caller gets for a ruling: an outcome, or the refusal thrown; and what subscribers see. */

import { StoreUnavailableError, WriteRefusedError } from '../errors.ts'
import { type DecisionEvent, publishDecision, publishFault } from '../events.ts'
import { type Codec, decodeResult } from './codec.ts'
import type { Done } from './fence-store.ts'
import type { Ruling, WriteOrder } from './units.ts'
import type { Verdict } from './verdict.ts'

/** The write took place: now, or before (then `result` is what was recorded). */
export interface Outcome<R> {
  readonly status: 'applied' | 'replayed'
  readonly result: R
  /** The generation under which the effect took place. */
  readonly appliedGeneration: number
  /** The highest generation that the destination has seen for the job. */
  readonly highestGeneration: number
}

type Refused = Omit<Extract<Verdict, { status: 'refuse' }>, 'status'>

/** Turns what an engine did with a write into its outcome, and publishes the decision. */
export function conclude<R>(
  verb: 'write' | 'within',
  order: WriteOrder,
  done: Done<Ruling, R>,
  codec: Codec,
): Outcome<R> {
  const { verdict } = done.answer
  if (done.effect?.status === 'threw') {
    reportRuling(verb, order, done.answer, 'failed')
    throw done.effect.error
  }
  reportRuling(verb, order, done.answer)
  if (done.effect !== undefined) return applied(order, verdict, done.effect.value)
  if (verdict.status === 'replay') return replayed(verdict, done.answer, codec)
  if (verdict.status === 'refuse') throw refusal(order, verdict)
  throw new Error('the fence store did not run the effect that its unit asked for')
}

export function applied<R>(
  order: WriteOrder,
  { highestGeneration }: Pick<Verdict, 'highestGeneration'>,
  result: R,
): Outcome<R> {
  return {
    status: 'applied',
    result,
    appliedGeneration: order.token.generation,
    highestGeneration,
  }
}

export function replayed<R>(
  verdict: Extract<Verdict, { status: 'replay' }>,
  ruling: Ruling,
  codec: Codec,
): Outcome<R> {
  return {
    status: 'replayed',
    result: decodeResult(ruling.recorded, codec) as R,
    appliedGeneration: verdict.appliedGeneration,
    highestGeneration: verdict.highestGeneration,
  }
}

export function refusal(order: WriteOrder, verdict: Refused, cause?: unknown): WriteRefusedError {
  return new WriteRefusedError(
    verdict.code,
    {
      jobId: order.job.jobId,
      generation: order.token.generation,
      operationId: order.operationId,
      highestGeneration: verdict.highestGeneration,
      // Of an operation that he did not name a caller is told nothing.
      operationApplied: order.operationId === undefined ? undefined : verdict.operationApplied,
      retryAfterMs: verdict.retryAfterMs,
    },
    cause === undefined ? undefined : { cause },
  )
}

/** A write whose fate is not known may be repeated only under an operation id (rule 19). */
export function unavailable(order: WriteOrder, error: unknown): unknown {
  if (!(error instanceof StoreUnavailableError)) return error
  publishFault({ fault: 'store_unavailable', ...about(order), error })
  if (order.operationId !== undefined) return error
  return new StoreUnavailableError(error.message, { cause: error.cause ?? error, retryable: false })
}

export function reportRuling(
  verb: DecisionEvent['verb'],
  order: WriteOrder,
  ruling: Ruling,
  failed?: 'failed',
): void {
  const { verdict, tookOverFrom } = ruling
  const decision = failed ?? decisionOf(verdict)
  publishDecision(() => ({
    verb,
    decision,
    ...about(order),
    highestGeneration: verdict.highestGeneration,
    tookOverFrom,
    provisional: verb === 'within' ? true : undefined,
    reportOnly: order.mode === 'report' ? true : undefined,
  }))
  if (decision === 'conflict') publishFault({ fault: 'conflict', ...about(order) })
}

function about({ job, token, operationId }: WriteOrder) {
  return { ...job, generation: token.generation, operationId }
}

function decisionOf(verdict: Verdict): DecisionEvent['decision'] {
  if (verdict.status === 'refuse') return verdict.code
  return verdict.status === 'apply' ? 'applied' : 'replayed'
}
