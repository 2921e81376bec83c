/** `protect: 'handler'`: the handler is the effect, its answer is the result. */

import { AttemptSupersededError, NotAppliedError, WriteRefusedError } from '../errors.ts'
import { publishFault } from '../events.ts'
import type { EffectContext, EffectEnd } from '../guard/effect.ts'
import type { StoreMode } from '../guard/fence-store.ts'
import type { Outcome } from '../guard/outcome.ts'
import type { AnswerVerdict } from './answer-verdict.ts'
import type { Exchange, Hold } from './exchange.ts'
import type { FencingSettings } from './fencing-options.ts'
import { type RecordedAnswer, recordAnswer, replayAnswer } from './recording.ts'
import type { RequestFence } from './request-fence.ts'

/** How far the handler has come. */
interface Run {
  hold?: Hold
  ending?: 'applied' | 'not_applied' | 'error'
  /** What is known of it now, an earlier attempt that nobody has settled included. */
  ended?: EffectEnd
}

/**
 * Runs the handler as an effect. Its answer is held until what it did is settled durably: a client
 * that was told of success finds it on record, whatever happens next.
 * @throws what refuses the request; then nothing was answered
 */
export async function protectHandler<Tx, Mode extends StoreMode, Req>(
  exchange: Exchange<Req>,
  fence: RequestFence<Tx, Mode>,
  settings: FencingSettings<Req>,
  verdict: AnswerVerdict,
): Promise<void> {
  const { guard, intent } = fence
  const run: Run = {}
  const perform = async ({ signal }: EffectContext): Promise<unknown> => {
    verdict.passed(intent.token.generation)
    return runHandler(run, exchange, settings, signal)
  }
  const { deadlineMs, onUnknown, errorsMean, afterOverdue } = settings
  const onEnded = (ended: EffectEnd): void => {
    run.ended = ended
  }
  const options = { deadlineMs, onUnknown, errorsMean, afterOverdue, onEnded }
  fence.takeOperation()
  let outcome: Outcome<unknown>
  try {
    outcome = await guard.effect(intent, perform, options)
  } catch (error) {
    if (run.hold !== undefined) return afterRun(run.hold, run, error, fence, verdict)
    if (intent.mode !== 'report') throw error
    const { scope, token } = intent
    const { jobId, generation } = token
    publishFault({ fault: 'failed_open', scope, jobId, generation, error })
    exchange.proceed()
    return
  }
  verdict.outcome(outcome, intent.operationId)
  if (run.hold === undefined) exchange.answer(replayAnswer(outcome.result))
  else run.hold.release()
}

async function runHandler<Req>(
  run: Run,
  exchange: Exchange<Req>,
  settings: FencingSettings<Req>,
  late: AbortSignal,
): Promise<RecordedAnswer> {
  // A response time-out, say, while the store was asked: there is nothing left to hold back.
  if (exchange.isAnswered()) throw new NotAppliedError('it was answered before the handler ran')
  const hold = exchange.hold(settings.maxBodyBytes)
  run.hold = hold
  // Past its deadline the operation is in the way of newer generations: no client may prolong that.
  late.addEventListener('abort', () => hold.waitNoMore())
  exchange.proceed()
  const answer = await hold.ended
  const ending = endingOf(answer.status, settings)
  const recorded = recordAnswer(answer, settings.maxBodyBytes)
  run.ending = ending
  if (ending === 'applied') return recorded
  const says = `the handler answered ${answer.status}`
  throw ending === 'not_applied' ? new NotAppliedError(says) : new Error(says)
}

/** What a status proves. 503 is how an application says that it did not take the request on. */
function endingOf<Req>(
  status: number,
  { recordable }: FencingSettings<Req>,
): NonNullable<Run['ending']> {
  const said = recordable?.(status)
  if (said !== undefined) return said ? 'applied' : 'not_applied'
  if (status < 400) return 'applied'
  if (status < 500 || status === 503) return 'not_applied'
  return 'error'
}

/** The handler has run, and the effect ended with an error: its own, or that of the settling. */
function afterRun<Tx, Mode extends StoreMode>(
  hold: Hold,
  { ending, ended }: Run,
  error: unknown,
  { intent }: RequestFence<Tx, Mode>,
  verdict: AnswerVerdict,
): void {
  const { token, operationId, scope } = intent
  const { jobId, generation } = token
  const known = { jobId, generation, operationId }
  if (ending === undefined) {
    // It destroyed its response, or `recordable` threw: a new answer replaces what there is.
    verdict.ended('unknown', operationId)
    hold.drop()
    throw error
  }
  if (ending === 'applied') {
    // Not on record, or on another's: the answer would promise what a retry does not keep.
    const cause = error instanceof AttemptSupersededError
    if (cause || error instanceof WriteRefusedError) {
      hold.drop()
      throw cause ? new WriteRefusedError('outcome_unknown', known, { cause: error }) : error
    }
    // On record as done, without an answer that the codec can spell.
    publishFault({ fault: 'not_recorded', scope, ...known, error })
    verdict.outcome({ status: 'applied', highestGeneration: generation }, operationId)
  } else verdict.ended(ended, operationId)
  hold.release()
}
