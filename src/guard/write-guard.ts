import { WriteRefusedError } from '../errors.ts'
import { publishDecision, publishFault } from '../events.ts'
import { checkCount, checkMethods } from '../options.ts'
import { checkId, checkScope, checkToken, type FencingToken } from '../token.ts'
import { type Apply, runnable } from './apply.ts'
import { BoundFence } from './bound-fence.ts'
import { type Codec, encodeResult } from './codec.ts'
import { type EffectContext, type EffectOptions, runEffect } from './effect.ts'
import { type FenceState, stateOf } from './fence-state.ts'
import type {
  Answer,
  FenceStore,
  JobKey,
  PruneRequest,
  StoreMode,
  UnsettledOperation,
  UnsettledQuery,
} from './fence-store.ts'
import {
  checkEffectOptions,
  checkGuardOptions,
  checkPrune,
  type WriteGuardOptions,
} from './guard-options.ts'
import { checkIntent, type WriteIntent } from './intent.ts'
import { conclude, type Outcome, unavailable } from './outcome.ts'
import type { Known, Resolved } from './settle.ts'
import { advanceUnit, reopenUnit, resolveUnit, writeUnit } from './units.ts'
import { decide, type Verdict } from './verdict.ts'

/** What an operator found out about an operation. */
export type Resolution =
  | { readonly status: 'applied'; readonly result?: unknown }
  | { readonly status: 'not_applied' }

const STORE_METHODS = ['transact', 'view'] as const

/**
 * The check at the destination: refuses what comes from a lease that is over, and recognises what
 * it already has.
 *
 * `write`, `within` and `effect` throw `WriteRefusedError` for a refusal, `StoreUnavailableError`
 * where the store cannot answer (then the write is *not known*: repeat it under the same operation
 * id), `TypeError`/`RangeError` for misuse, and whatever the effect itself throws, as it is.
 */
export class WriteGuard<Tx, Mode extends StoreMode> {
  readonly store: FenceStore<Tx, Mode>
  readonly #codec: Codec
  readonly #deadlineMs: number
  readonly #failOpen: boolean

  /** @throws TypeError or RangeError naming what is wrong with the store or the options */
  constructor(store: FenceStore<Tx, Mode>, options: WriteGuardOptions = {}) {
    checkMethods('WriteGuard needs a fence store', store, STORE_METHODS)
    const { codec, deadlineMs, failOpen } = checkGuardOptions(options)
    this.store = store
    this.#codec = codec
    this.#deadlineMs = deadlineMs
    this.#failOpen = failOpen
  }

  /** Whether `dangerouslyFailOpen` was set. */
  get failsOpen(): boolean {
    return this.#failOpen
  }

  /**
   * Runs `apply` in one transaction with the check, the fence and the record of the operation, in
   * the destination's own database: all of it is committed, or none but the fence. `apply` may run
   * again when the engine has to start over; one run commits. Resolves after the commit.
   */
  async write<R>(intent: WriteIntent, apply: Apply<Tx, R, Mode>): Promise<Outcome<R>> {
    const order = checkIntent(intent)
    const unit = writeUnit(order, runnable(this.store.mode, order, apply, this.#codec))
    try {
      return conclude('write', order, await this.store.transact(unit), this.#codec)
    } catch (error) {
      throw unavailable(order, error)
    }
  }

  /**
   * Like {@link write}, at once and on the calling stack, for scripts on a synchronous engine:
   * one durable transaction each, and a busy database blocks the thread until its time-out.
   */
  writeSync<R>(
    this: WriteGuard<Tx, 'sync'>,
    intent: WriteIntent,
    apply: Apply<Tx, R, 'sync'>,
  ): Outcome<R> {
    const order = checkIntent(intent)
    if (this.store.transactSync === undefined) throw new TypeError('the store has no writeSync')
    const unit = writeUnit(
      order,
      runnable<Tx, R, 'sync'>(this.store.mode, order, apply, this.#codec),
    )
    try {
      return conclude('write', order, this.store.transactSync(unit), this.#codec)
    } catch (error) {
      throw unavailable(order, error)
    }
  }

  /**
   * Like {@link write}, inside a transaction that the caller has opened and will commit. Until he
   * does, the outcome is provisional, the fence included: a rollback forgets that the token came.
   */
  within<R>(tx: Tx, intent: WriteIntent, apply: Apply<Tx, R, Mode>): Answer<Mode, Outcome<R>> {
    const order = checkIntent(intent)
    const unit = writeUnit(order, runnable(this.store.mode, order, apply, this.#codec))
    const done = this.store.within(tx, unit)
    const outcome =
      done instanceof Promise
        ? done.then((each) => conclude<R>('within', order, each, this.#codec))
        : conclude<R>('within', order, done, this.#codec)
    return outcome as Answer<Mode, Outcome<R>>
  }

  /**
   * Runs an effect that takes place elsewhere: reserves it durably, runs `perform`, settles. Until
   * it settles it holds newer generations back. An error of `perform` leaves the outcome unknown
   * unless it is a `NotAppliedError` or `errorsMean` says otherwise.
   * @throws TypeError also where its result cannot be recorded: it took place, and is recorded
   * without one
   * @throws AttemptSupersededError where an operator or another attempt has settled it meanwhile
   */
  async effect<R>(
    intent: WriteIntent,
    perform: (context: EffectContext) => Promise<R>,
    options: EffectOptions<R> = {},
  ): Promise<Outcome<R>> {
    if (typeof perform !== 'function') throw new TypeError('perform must be a function')
    const { afterOverdue, ...settings } = checkEffectOptions(options, this.#deadlineMs)
    return runEffect({
      store: this.store,
      codec: this.#codec,
      order: { ...checkIntent(intent), afterOverdue },
      perform,
      ...settings,
      failOpen: this.#failOpen,
    })
  }

  /** The same verbs with the intent filled in: what a handler is given. */
  bind(intent: WriteIntent): BoundFence<Tx, Mode> {
    return new BoundFence(this, intent)
  }

  /**
   * What the guard would say to this write now: a value, never thrown. Records, advances and
   * resolves nothing; by the time a write comes, the verdict may be another.
   */
  async judge(intent: WriteIntent): Promise<Verdict> {
    const order = checkIntent(intent)
    return decide(await this.store.view(order.job, order.operationId), order)
  }

  /**
   * Moves the fence to this token, durably: from here on older generations are refused. A new
   * holder does this first, and reads only when nothing is left in `older` (rule 10).
   * @throws WriteRefusedError `stale` or `conflict`
   */
  advance(token: FencingToken, scope?: string): Promise<FenceState> {
    return this.#admit('advance', token, scope)
  }

  /**
   * Ends the job at this destination: no new effect starts, of any generation, until it is
   * reopened; recorded operations are still replayed. Repeating it changes nothing.
   * @throws WriteRefusedError `stale` or `conflict`
   */
  seal(token: FencingToken, scope?: string): Promise<FenceState> {
    return this.#admit('seal', token, scope)
  }

  /**
   * Ends a seal: the fence goes to its generation + 1, unbound, so that nothing of the old one
   * starts again and the next claim's token binds it. Without a seal the present holder is put
   * out the same way. Repeating it changes nothing. `undefined` where no fence is known.
   * @throws RangeError at the last generation that there is: nothing can come after it
   */
  async reopen(jobId: string, scope?: string): Promise<FenceState | undefined> {
    const job = checkJob(jobId, scope)
    const { answer } = await this.store.transact(reopenUnit<Tx, Mode>(job))
    const generation = answer.state?.highestGeneration
    if (answer.status === 'exhausted') {
      throw new RangeError(`generation ${generation} of the job is the last one there is`)
    }
    if (answer.status === 'reopened') {
      publishDecision(() => ({ verb: 'reopen', decision: 'reopened', ...job, generation }))
    }
    return answer.state
  }

  /** What is remembered of the job, or `undefined` where no token of it was ever seen. */
  async inspect(jobId: string, scope?: string): Promise<FenceState | undefined> {
    const job = checkJob(jobId, scope)
    const { fence, census } = await this.store.view(job)
    return fence === undefined ? undefined : stateOf(job, fence, census ?? [])
  }

  /** Operations that have not ended or whose outcome is not known, lowest generation first. */
  async unsettled(query: UnsettledQuery = {}): Promise<UnsettledOperation[]> {
    return this.store.list({
      scope: query.scope === undefined ? undefined : checkScope(query.scope),
      jobId: query.jobId === undefined ? undefined : checkId('jobId', query.jobId),
      limit: checkCount('limit', query.limit ?? 100, 1, 1000),
    })
  }

  /**
   * Says what became of an operation whose outcome was not known: `applied` is replayed from here
   * on, `not_applied` may be tried again. A value; an operation that is applied stays so.
   * @throws WriteRefusedError `in_flight` while it runs within its deadline
   */
  async resolve(
    operation: {
      readonly jobId: string
      readonly operationId: string
      readonly scope?: string | undefined
    },
    resolution: Resolution,
  ): Promise<Resolved> {
    const job = checkJob(operation.jobId, operation.scope)
    const operationId = checkId('operationId', operation.operationId)
    const ending = this.#endingOf(resolution)
    const { answer } = await this.store.transact(resolveUnit<Tx, Mode>(job, operationId, ending))
    if (answer.status === 'in_flight') {
      const { generation, remainingMs: retryAfterMs } = answer
      throw new WriteRefusedError('in_flight', { ...job, operationId, generation, retryAfterMs })
    }
    if (answer.status === 'resolved') {
      publishDecision(() => ({ verb: 'resolve', decision: 'resolved', ...job, operationId }))
    }
    return { status: answer.status }
  }

  /**
   * Deletes records of applied operations, one batch a call: the promise that none of them takes
   * place twice ends with its record. Never deletes fences, nor what is in flight or unknown.
   */
  async prune(request: PruneRequest): Promise<{ readonly pruned: number }> {
    return this.store.prune(checkPrune(request))
  }

  /** Refuses later calls; what is queued is withdrawn. A handle of the user's own stays open. */
  close(): Promise<void> {
    return this.store.close()
  }

  /** Nothing is taken for granted here: `not_applied` lets the operation take place once more. */
  #endingOf(resolution: Resolution): Known {
    switch (resolution.status) {
      case 'applied':
        return { status: 'applied', result: encodeResult(resolution.result, this.#codec) }
      case 'not_applied':
        return { status: 'not_applied' }
      default:
        throw new TypeError("resolution.status must be 'applied' or 'not_applied'")
    }
  }

  async #admit(verb: 'advance' | 'seal', given: FencingToken, scope?: string): Promise<FenceState> {
    const token = checkToken(given)
    const job = checkJob(token.jobId, scope)
    const known = { ...job, generation: token.generation }
    const unit = advanceUnit<Tx, Mode>(job, token, verb === 'seal')
    const { answer } = await this.store.transact(unit)
    if (!answer.admitted) {
      const { code, highestGeneration } = answer
      publishDecision(() => ({ verb, decision: code, ...known, highestGeneration }))
      if (code === 'conflict') publishFault({ fault: 'conflict', ...known })
      throw new WriteRefusedError(code, { ...known, highestGeneration })
    }
    const { state, tookOverFrom } = answer
    const decision = verb === 'seal' ? 'sealed_now' : 'advanced'
    const { highestGeneration } = state
    publishDecision(() => ({ verb, decision, ...known, highestGeneration, tookOverFrom }))
    return state
  }
}

function checkJob(jobId: unknown, scope: unknown): JobKey {
  return { scope: checkScope(scope), jobId: checkId('jobId', jobId) }
}
