/** Writes that bear no token: how writers that know nothing of fencing are let in, and how long. */

import { RequestRefusedError, StoreUnavailableError } from '../errors.ts'
import { publishDecision, publishFault } from '../events.ts'
import { type Apply, runnable } from './apply.ts'
import { jsonCodec } from './codec.ts'
import type { JobKey, StoreMode } from './fence-store.ts'
import type { WriteGuard } from './write-guard.ts'

export interface UnfencedOptions {
  /** Writes to a job that has a fence too: for watching a guard before it is switched on. */
  readonly evenIfFenced: boolean
}

/**
 * Runs `apply` in one transaction with the check that the job has no fence. It leaves no fence and
 * no record: such a write is neither ordered nor recognised when it comes again.
 * @throws RequestRefusedError `token_required` once the job has a fence
 * @throws StoreUnavailableError not retryable, since repeating it may write twice
 */
export async function writeUnfenced<Tx, Mode extends StoreMode, R>(
  { store }: WriteGuard<Tx, Mode>,
  job: JobKey,
  apply: Apply<Tx, R, Mode>,
  { evenIfFenced }: UnfencedOptions,
): Promise<R> {
  const effect = runnable(store.mode, {}, apply, jsonCodec)
  const run = { kind: 'apply', generation: 0, fingerprint: undefined, unrecorded: true } as const
  try {
    const done = await store.transact({
      job,
      insideTransaction: 'wait',
      step: ({ fence }) =>
        fence === undefined || evenIfFenced
          ? { answer: undefined, action: run }
          : { answer: fence.generation, action: { kind: 'none' } },
      effect,
    })
    if (done.effect?.status === 'threw') throw done.effect.error
    const highestGeneration = done.answer
    const decision = done.effect === undefined ? 'token_required' : 'passed'
    publishDecision(() => ({ verb: 'write', decision, ...job, highestGeneration }))
    if (done.effect !== undefined) return done.effect.value
    throw new RequestRefusedError('token_required', 'the job has a fence', { jobId: job.jobId })
  } catch (error) {
    if (!(error instanceof StoreUnavailableError)) throw error
    publishFault({ fault: 'store_unavailable', ...job, error })
    const cause = error.cause ?? error
    throw new StoreUnavailableError(error.message, { cause, retryable: false })
  }
}
