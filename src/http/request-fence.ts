import type { RequestRefusedError } from '../errors.ts'
import type { Apply } from '../guard/apply.ts'
import { BoundFence, type Override } from '../guard/bound-fence.ts'
import type { EffectContext, EffectEnd, EffectOptions } from '../guard/effect.ts'
import type { FenceState } from '../guard/fence-state.ts'
import type { Answer, JobKey, StoreMode } from '../guard/fence-store.ts'
import type { WriteIntent } from '../guard/intent.ts'
import type { Outcome } from '../guard/outcome.ts'
import { writeUnfenced } from '../guard/unfenced.ts'
import type { WriteGuard } from '../guard/write-guard.ts'
import type { AnswerVerdict } from './answer-verdict.ts'
import { withHttp } from './http-error.ts'

/** A request that bears no token, or none that is good, and was let in all the same. */
export interface TokenlessEntry {
  /** What a handler gets that asks for the token. */
  readonly refusal: RequestRefusedError
  /** The job to write to; absent where nothing names it, and then there is no writing. */
  readonly job?: JobKey | undefined
  readonly evenIfFenced: boolean
}

/** What `fencing()` says of effects. */
type EffectDefaults = Pick<
  EffectOptions<unknown>,
  'deadlineMs' | 'onUnknown' | 'errorsMean' | 'afterOverdue'
>

/**
 * The guard's verbs for one request: token, operation id, fingerprint and scope are filled in.
 *
 * The operation id names one write. A second one in the same request needs an id of its own, or it
 * would be taken for the first and skipped: `write(apply, { operationId: … })`.
 */
export class RequestFence<Tx, Mode extends StoreMode> extends BoundFence<Tx, Mode> {
  readonly #verdict: AnswerVerdict
  readonly #defaults: EffectDefaults
  readonly #tokenless: TokenlessEntry | undefined
  readonly #taken = new Set<string | undefined>()
  #accounted = false

  constructor(
    guard: WriteGuard<Tx, Mode>,
    intent: WriteIntent,
    verdict: AnswerVerdict,
    defaults: EffectDefaults,
    tokenless?: TokenlessEntry,
  ) {
    super(guard, intent)
    this.#verdict = verdict
    this.#defaults = defaults
    this.#tokenless = tokenless
  }

  /** Whether the request bears a good token; if not, `token` throws what is wrong with it. */
  get fenced(): boolean {
    return this.#tokenless === undefined
  }

  /** The operation id of the request; `undefined` where it bears none. */
  get operationId(): string | undefined {
    return this.intent.operationId
  }

  /** Whether the guard has done something for the request, or the handler wants nothing of it. */
  get accounted(): boolean {
    return this.#accounted
  }

  /** Says that this request has nothing to write, so that it may be answered with success. */
  noEffect(): void {
    this.#accounted = true
  }

  /** Takes the operation id for the handler as a whole (`protect: 'handler'`). */
  takeOperation(): void {
    this.#taken.add(this.operationId)
  }

  /**
   * See `WriteGuard.write`. Without a token (`fenced` is false) it applies while the job has no
   * fence, checked in the same transaction, or whatever the fence in mode `'report'`: unordered,
   * unrecorded, with generation 0 in its outcome.
   * @throws RequestRefusedError without a token, once the job has a fence or where nothing names it
   */
  override async write<R>(apply: Apply<Tx, R, Mode>, override?: Override): Promise<Outcome<R>> {
    const call = this.#begin(override)
    try {
      if (this.#tokenless === undefined) return call.done(await super.write(apply, override))
      const { refusal, job, evenIfFenced } = this.#tokenless
      if (job === undefined) throw refusal
      const result = await writeUnfenced(this.guard, job, apply, { evenIfFenced })
      call.over()
      return { status: 'applied', result, appliedGeneration: 0, highestGeneration: 0 }
    } catch (error) {
      throw call.failed(error)
    }
  }

  /** See `WriteGuard.within`; needs a token. */
  override within<R>(
    tx: Tx,
    apply: Apply<Tx, R, Mode>,
    override?: Override,
  ): Answer<Mode, Outcome<R>> {
    const call = this.#begin(override)
    try {
      const answer = super.within(tx, apply, override)
      if (!(answer instanceof Promise)) return call.done(answer as Outcome<R>) as typeof answer
      return answer.then(call.done<R>, (error: unknown) => {
        throw call.failed(error)
      }) as typeof answer
    } catch (error) {
      throw call.failed(error)
    }
  }

  /** See `WriteGuard.effect`; needs a token. What its options leave out `fencing()` has said. */
  override async effect<R>(
    perform: (context: EffectContext) => Promise<R>,
    options?: EffectOptions<R>,
    override?: Override,
  ): Promise<Outcome<R>> {
    const call = this.#begin(override)
    try {
      const { deadlineMs, onUnknown, errorsMean, afterOverdue } = this.#defaults
      const defaults = { deadlineMs, onUnknown, errorsMean, afterOverdue } as EffectOptions<R>
      const { onEnded = () => {} } = options ?? {}
      const tells = (ended: EffectEnd) => {
        call.ended(ended)
        return onEnded(ended)
      }
      // What is no function is left for the guard to refuse.
      const told = typeof onEnded === 'function' ? tells : onEnded
      const given = { ...defaults, ...options, onEnded: told }
      return call.done(await super.effect(perform, given, override))
    } catch (error) {
      throw call.failed(error)
    }
  }

  /** See `WriteGuard.advance`; needs a token. Nothing else need be written then. */
  override async advance(): Promise<FenceState> {
    return this.#moved(() => super.advance())
  }

  /** See `WriteGuard.seal`; needs a token. Nothing else need be written then. */
  override async seal(): Promise<FenceState> {
    return this.#moved(() => super.seal())
  }

  async #moved(move: () => Promise<FenceState>): Promise<FenceState> {
    try {
      const state = await move()
      this.#accounted = true
      return state
    } catch (error) {
      this.#verdict.refused(error)
      throw withHttp(error)
    }
  }

  #begin(override: Override | undefined) {
    const id = override?.operationId ?? this.operationId
    if (id !== undefined && this.#taken.has(id)) {
      throw new TypeError(
        `operation ${JSON.stringify(id)} is under way or done in this request:` +
          ' a second write needs an operationId of its own',
      )
    }
    this.#taken.add(id)
    const over = this.#verdict.begin()
    let known: EffectEnd = 'not_applied'
    return {
      over,
      ended: (ended: EffectEnd): void => {
        known = ended
      },
      done: <R>(outcome: Outcome<R>): Outcome<R> => {
        over()
        this.#accounted = true
        this.#verdict.outcome(outcome, id)
        return outcome
      },
      failed: (error: unknown): unknown => {
        over()
        // It may be tried again within this request: the guard knows what is on record of it.
        this.#taken.delete(id)
        this.#verdict.refused(error)
        // An effect that began may have done something, whatever its error says of others.
        this.#verdict.ended(known, id)
        if (known === 'applied') this.#accounted = true
        return withHttp(error)
      },
    }
  }
}
