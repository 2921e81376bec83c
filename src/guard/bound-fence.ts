import type { FencingToken } from '../token.ts'
import type { Apply } from './apply.ts'
import type { EffectContext, EffectOptions } from './effect.ts'
import type { FenceState } from './fence-state.ts'
import type { Answer, StoreMode } from './fence-store.ts'
import type { WriteIntent } from './intent.ts'
import type { Outcome } from './outcome.ts'
import type { Verdict } from './verdict.ts'
import type { WriteGuard } from './write-guard.ts'

/** What one call on a bound fence may say otherwise than its intent; `undefined` says nothing. */
export type Override = Pick<WriteIntent, 'operationId' | 'fingerprint'>

/** The verbs of a guard with the intent filled in, so that a handler cannot mix up tokens. */
export class BoundFence<Tx, Mode extends StoreMode> {
  readonly guard: WriteGuard<Tx, Mode>
  readonly intent: WriteIntent

  constructor(guard: WriteGuard<Tx, Mode>, intent: WriteIntent) {
    this.guard = guard
    this.intent = intent
  }

  get token(): FencingToken {
    return this.intent.token
  }

  /** See {@link WriteGuard.write}. */
  async write<R>(apply: Apply<Tx, R, Mode>, override?: Override): Promise<Outcome<R>> {
    return this.guard.write(this.#intentOf(override), apply)
  }

  /** See {@link WriteGuard.within}. */
  within<R>(tx: Tx, apply: Apply<Tx, R, Mode>, override?: Override): Answer<Mode, Outcome<R>> {
    return this.guard.within(tx, this.#intentOf(override), apply)
  }

  /** See {@link WriteGuard.effect}. */
  async effect<R>(
    perform: (context: EffectContext) => Promise<R>,
    options?: EffectOptions<R>,
    override?: Override,
  ): Promise<Outcome<R>> {
    return this.guard.effect(this.#intentOf(override), perform, options)
  }

  /** See {@link WriteGuard.judge}. */
  judge(): Promise<Verdict> {
    return this.guard.judge(this.intent)
  }

  /** See {@link WriteGuard.advance}. */
  advance(): Promise<FenceState> {
    return this.guard.advance(this.intent.token, this.intent.scope)
  }

  /** See {@link WriteGuard.seal}. */
  seal(): Promise<FenceState> {
    return this.guard.seal(this.intent.token, this.intent.scope)
  }

  /** An id that is `undefined` must not take the place of the intent's: duplicates would pass. */
  #intentOf(override: Override = {}): WriteIntent {
    const { operationId, fingerprint, ...others } = override
    const [unknown] = Object.keys(others)
    if (unknown !== undefined) throw new TypeError(`an override has no member ${unknown}`)
    return {
      ...this.intent,
      operationId: operationId === undefined ? this.intent.operationId : operationId,
      fingerprint: fingerprint === undefined ? this.intent.fingerprint : fingerprint,
    }
  }
}
