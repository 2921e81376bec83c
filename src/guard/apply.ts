/** The user's callback: what it may be, and how its result is spelled. */

import { type Codec, encodeResult } from './codec.ts'
import type { Encoded, Returned, StoreMode } from './fence-store.ts'
import type { WriteOrder } from './units.ts'

/** `R`, as long as it is no promise: a synchronous transaction cannot wait for one. */
type NotPromise<R> = R extends PromiseLike<unknown> ? never : R

/** The effect of a write, given the engine's transaction. */
export type Apply<Tx, R, Mode extends StoreMode> = Mode extends 'sync'
  ? (tx: Tx) => R & NotPromise<R>
  : (tx: Tx) => R | Promise<R>

/**
 * Makes the engine's callback of the user's.
 * @throws TypeError at once for an async function on a synchronous engine: it is never called
 */
export function runnable<Tx, R, Mode extends StoreMode>(
  mode: Mode,
  order: Pick<WriteOrder, 'operationId'>,
  apply: Apply<Tx, R, Mode>,
  codec: Codec,
): (tx: Tx) => Returned<Mode, Encoded<R>> {
  const named = order.operationId !== undefined
  const encoded = (value: R): Encoded<R> => ({
    value,
    text: named ? encodeResult(value, codec) : undefined,
  })
  if (typeof apply !== 'function') throw new TypeError('apply must be a function')
  if (mode === 'async') {
    const run = apply as (tx: Tx) => R | Promise<R>
    const spelled = async (tx: Tx) => encoded(await run(tx))
    return spelled as (tx: Tx) => Returned<Mode, Encoded<R>>
  }
  if (Object.prototype.toString.call(apply) === '[object AsyncFunction]') {
    throw new TypeError(`apply must not be async: this engine's transactions cannot wait`)
  }
  const run = apply as (tx: Tx) => R
  const spelled = (tx: Tx) => {
    const value = run(tx)
    if (isThenable(value)) {
      // It was started and will end on its own: nobody is left to hear how.
      Promise.resolve(value).catch(() => {})
      throw new TypeError(
        'apply must not return a promise: what it awaits is not in the transaction,' +
          ' and what it did after its first await is not undone, nor recorded',
      )
    }
    if (isIterator(value)) {
      // One of the driver's own would keep the connection from ending its transaction.
      value.return?.()
      throw new TypeError('apply must not return an iterator: it would read after the transaction')
    }
    return encoded(value)
  }
  return spelled as (tx: Tx) => Returned<Mode, Encoded<R>>
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    (typeof value === 'object' || typeof value === 'function') &&
    value !== null &&
    'then' in value &&
    typeof value.then === 'function'
  )
}

function isIterator(value: unknown): value is Iterator<unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    Symbol.iterator in value &&
    'next' in value &&
    typeof value.next === 'function'
  )
}
