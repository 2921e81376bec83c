/** What a guard, one of its effects and its pruning can be told, checked. */

import {
  checkChoice,
  checkCount,
  checkDuration,
  checkOptionNames,
  type OptionNames,
} from '../options.ts'
import { type Codec, jsonCodec } from './codec.ts'
import type { EffectOptions } from './effect.ts'
import type { PruneRequest } from './fence-store.ts'

/** How a guard records, and how long its effects may take. */
export interface WriteGuardOptions {
  /** How results are recorded; JSON unless told. */
  readonly codec?: Codec | undefined
  /** The deadline of an effect that names none, in milliseconds; 60 000 unless told. */
  readonly deadlineMs?: number | undefined
  /**
   * Lets `effect` run **unguarded** while its store is unavailable: stale and duplicate effects
   * get through. `write` cannot fail open, since its effect is part of the store's transaction.
   */
  readonly dangerouslyFailOpen?: boolean | undefined
}

const GUARD = {
  codec: true,
  deadlineMs: true,
  dangerouslyFailOpen: true,
} satisfies OptionNames<WriteGuardOptions>

const EFFECT = {
  deadlineMs: true,
  onUnknown: true,
  errorsMean: true,
  afterOverdue: true,
  onEnded: true,
} satisfies OptionNames<EffectOptions<unknown>>

const PRUNE = {
  olderThanMs: true,
  limit: true,
  sealedOnly: true,
} satisfies OptionNames<PruneRequest>

/** @throws TypeError or RangeError naming the option */
export function checkGuardOptions(options: WriteGuardOptions) {
  checkOptionNames(options, GUARD)
  const failOpen: unknown = options.dangerouslyFailOpen ?? false
  // A string from the environment (`'false'`) must not open it.
  if (typeof failOpen !== 'boolean') throw new TypeError('dangerouslyFailOpen must be a boolean')
  return {
    codec: options.codec ?? jsonCodec,
    deadlineMs: checkDuration('deadlineMs', options.deadlineMs ?? 60_000),
    failOpen,
  }
}

/** `otherwiseMs` is the deadline of an effect that names none. @throws as the others do */
export function checkEffectOptions<R>(options: EffectOptions<R>, otherwiseMs: number) {
  checkOptionNames(options, EFFECT)
  const { onUnknown = 'refuse', deadlineMs = otherwiseMs, onEnded } = options
  if (typeof onUnknown !== 'function') checkChoice('onUnknown', onUnknown, ['refuse', 'rerun'])
  if (onEnded !== undefined && typeof onEnded !== 'function') {
    throw new TypeError('onEnded must be a function')
  }
  return {
    onUnknown,
    onEnded,
    deadlineMs: checkDuration('deadlineMs', deadlineMs),
    errorsMean: checkChoice('errorsMean', options.errorsMean, ['unknown', 'not_applied']),
    afterOverdue: checkChoice('afterOverdue', options.afterOverdue, ['refuse', 'proceed']),
  }
}

/** @throws TypeError or RangeError naming the option, `olderThanMs` where there is no request */
export function checkPrune(request: PruneRequest | undefined) {
  const given: Partial<PruneRequest> = request ?? {}
  checkOptionNames(given, PRUNE)
  const sealedOnly: unknown = given.sealedOnly ?? false
  // Engines would not agree on what a text means, and what is pruned is gone.
  if (typeof sealedOnly !== 'boolean') throw new TypeError('sealedOnly must be a boolean')
  return {
    olderThanMs: checkDuration('olderThanMs', given.olderThanMs, 0),
    limit: checkCount('limit', given.limit ?? 1000, 1, 10_000),
    sealedOnly,
  }
}
