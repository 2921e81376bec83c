/** One run of an operation that was reserved: perform it, then settle what became of it. */

import { inspect } from 'node:util'
import { AttemptSupersededError, NotAppliedError } from '../errors.ts'
import { publishFault } from '../events.ts'
import { encodeResult } from './codec.ts'
import type { EffectEnd, EffectPlan } from './effect.ts'
import type { JobKey, StoreMode } from './fence-store.ts'
import { applied, type Outcome, refusal, reportRuling } from './outcome.ts'
import type { Ending } from './settle.ts'
import { type Ruling, settleUnit } from './units.ts'

export interface Attempt {
  readonly job: JobKey
  /** The caller's, or an id that nobody else can name. */
  readonly operationId: string
  readonly attemptId: string
  readonly named: boolean
}

// Above this, timers fire at once (a signed 32-bit count of milliseconds).
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Runs the callback under a signal that aborts at the deadline. */
export async function runEffectCallback<Tx, Mode extends StoreMode, R>(
  plan: EffectPlan<Tx, Mode, R>,
  { operationId }: Attempt,
): Promise<R> {
  const { deadlineMs, order } = plan
  const controller = new AbortController()
  const late = () =>
    controller.abort(new DOMException(`past its deadline of ${deadlineMs} ms`, 'TimeoutError'))
  const timer = deadlineMs > LONGEST_TIMER_MS ? undefined : setTimeout(late, deadlineMs)
  try {
    return await plan.perform({ signal: controller.signal, token: order.token, operationId })
  } finally {
    clearTimeout(timer)
  }
}

export async function performReserved<Tx, Mode extends StoreMode, R>(
  plan: EffectPlan<Tx, Mode, R>,
  attempt: Attempt,
  ruling: Ruling,
): Promise<Outcome<R>> {
  let result: R
  try {
    result = await runEffectCallback(plan, attempt)
  } catch (error) {
    // A proof speaks of this attempt. The earlier one, whose outcome nobody knows, may have taken
    // place, or may land all the same.
    const status = ruling.earlier ?? provenBy(plan, error)
    // The caller gets his effect's own error: what the record says is told to subscribers.
    const settled = await settleAttempt(plan, attempt, { status })
    reportRuling('effect', plan.order, ruling, 'failed')
    const nothing = status === 'not_applied' && settled.status !== 'superseded'
    tellEnd(plan, nothing ? 'not_applied' : 'unknown')
    throw error
  }
  const spelled = spell(plan, attempt, result)
  const settled = await settleAttempt(plan, attempt, spelled.ending)
  const doubt = doubtIn(plan, ruling, settled)
  tellEnd(plan, doubt === undefined ? 'applied' : 'unknown')
  if (doubt !== undefined) throw doubt
  reportRuling('effect', plan.order, ruling)
  if ('error' in spelled) throw withoutResult(spelled.error, settled)
  return applied(plan.order, ruling.verdict, result)
}

/** What an error of the effect proves of the attempt that threw it. */
export function provenBy<Tx, Mode extends StoreMode, R>(
  plan: EffectPlan<Tx, Mode, R>,
  error: unknown,
): 'not_applied' | 'unknown' {
  const proven = error instanceof NotAppliedError || plan.errorsMean === 'not_applied'
  return proven ? 'not_applied' : 'unknown'
}

/** What `onEnded` throws, or rejects with, is a process warning: the caller gets what he would. */
export function tellEnd<Tx, Mode extends StoreMode, R>(
  { onEnded }: EffectPlan<Tx, Mode, R>,
  ended: EffectEnd,
): void {
  const told = (async () => onEnded?.(ended))()
  told.catch((error: unknown) => {
    process.emitWarning(`onEnded threw: ${inspect(error)}`, { code: 'WRITEFENCE_ON_ENDED' })
  })
}

/**
 * How the attempt ended well. An unnamed operation only held newer generations back: nobody can
 * ask for it again, so its record goes. A result that cannot be spelled is recorded as done
 * without it, since running the effect once more would be worse; the caller gets the error.
 */
function spell<Tx, Mode extends StoreMode, R>(
  plan: EffectPlan<Tx, Mode, R>,
  attempt: Attempt,
  result: R,
): { readonly ending: Ending; readonly error?: unknown } {
  if (!attempt.named) return { ending: { status: 'not_applied' } }
  const { generation } = plan.order.token
  try {
    return { ending: { status: 'applied', generation, result: encodeResult(result, plan.codec) } }
  } catch (error) {
    return { ending: { status: 'applied', generation, result: undefined }, error }
  }
}

/** Misuse that shows only once the effect has taken place: its error must not hide that. */
function withoutResult(cause: unknown, { status }: Settled): TypeError {
  const says = cause instanceof Error ? cause.message : String(cause)
  const record = status === 'settled' ? 'is recorded without a result' : 'could not be recorded'
  return new TypeError(`${says} (the effect took place, and ${record})`, { cause })
}

type Settled =
  | { readonly status: 'settled' }
  | { readonly status: 'superseded' | 'failed'; readonly error: unknown }

async function settleAttempt<Tx, Mode extends StoreMode, R>(
  plan: EffectPlan<Tx, Mode, R>,
  attempt: Attempt,
  ending: Ending,
): Promise<Settled> {
  const { job, operationId } = attempt
  const known = { ...job, generation: plan.order.token.generation, operationId }
  try {
    const { answer } = await plan.store.transact(settleUnit<Tx, Mode>(attempt, ending))
    if (!answer.settled) {
      const error = new AttemptSupersededError({ jobId: job.jobId, operationId })
      publishFault({ fault: 'attempt_superseded', ...known, error })
      return { status: 'superseded', error }
    }
    if (answer.late) publishFault({ fault: 'settled_late', ...known })
    return { status: 'settled' }
  } catch (error) {
    publishFault({ fault: 'settle_failed', ...known, error })
    return { status: 'failed', error }
  }
}

/** Why an effect that ended well is not told as done. */
function doubtIn<Tx, Mode extends StoreMode, R>(
  plan: EffectPlan<Tx, Mode, R>,
  ruling: Ruling,
  settled: Settled,
): unknown {
  if (settled.status === 'superseded') return settled.error
  if (settled.status === 'failed' && plan.onUnknown === 'rerun') {
    // The next caller will run it again: this one must not be told that it is done.
    return notSettled(plan, ruling, settled.error)
  }
  return undefined
}

function notSettled<Tx, Mode extends StoreMode, R>(
  plan: EffectPlan<Tx, Mode, R>,
  ruling: Ruling,
  cause: unknown,
): Error {
  const { highestGeneration } = ruling.verdict
  return refusal(
    plan.order,
    {
      code: 'outcome_unknown',
      highestGeneration,
      operationApplied: undefined,
      retryAfterMs: undefined,
    },
    cause,
  )
}
