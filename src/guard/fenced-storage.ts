import { createHash } from 'node:crypto'
import type { Apply } from './apply.ts'
import { BoundFence } from './bound-fence.ts'
import type { StoreMode } from './fence-store.ts'
import type { WriteIntent } from './intent.ts'
import type { Outcome } from './outcome.ts'
import type { WriteGuard } from './write-guard.ts'

/** A method of a resource: what it writes, it writes through the transaction it is given. */
export type StorageMethod<Tx> = (tx: Tx, ...args: never[]) => unknown

/** The same methods, with an intent in place of the transaction and an outcome as the answer. */
export type FencedStorage<Tx, Mode extends StoreMode, Methods> = {
  readonly [Name in keyof Methods]: Methods[Name] extends (tx: Tx, ...args: infer Args) => infer R
    ? (
        intent: WriteIntent | BoundFence<Tx, Mode>,
        ...args: Args
      ) => Promise<Outcome<Mode extends 'sync' ? R : Awaited<R>>>
    : never
}

/**
 * Wraps the writes of a resource so that none of them can be called without a token.
 *
 * Each method gets an intent (or a bound fence) in place of the transaction, and resolves to the
 * outcome of `guard.write`, errors and atomicity included. Where the intent has no fingerprint,
 * the method's name and the JSON of its arguments are it: one operation id on two methods, or on
 * one method with other arguments, is a `mismatch` and not a replay of the wrong result.
 */
export function fencedStorage<
  Tx,
  Mode extends StoreMode,
  Methods extends Record<string, StorageMethod<Tx>>,
>(guard: WriteGuard<Tx, Mode>, methods: Methods): FencedStorage<Tx, Mode, Methods> {
  const fenced = Object.entries(methods).map(([name, method]) => {
    const call = async (intent: WriteIntent | BoundFence<Tx, Mode>, ...args: never[]) => {
      const given = intent instanceof BoundFence ? intent.intent : intent
      const fingerprint = given.fingerprint ?? digest(name, args)
      const apply = wrap(method, args) as Apply<Tx, unknown, Mode>
      if (!(intent instanceof BoundFence)) return guard.write({ ...given, fingerprint }, apply)
      if (intent.guard !== guard) throw new TypeError('the bound fence is of another guard')
      // It is asked itself: in a request it keeps count of what was written.
      return intent.write(apply, { fingerprint })
    }
    return [name, call] as const
  })
  return Object.fromEntries(fenced) as FencedStorage<Tx, Mode, Methods>
}

/** Keeps what the guard looks at: whether the method is declared `async`. */
function wrap<Tx>(method: StorageMethod<Tx>, args: never[]): (tx: Tx) => unknown {
  if (Object.prototype.toString.call(method) === '[object AsyncFunction]') {
    return async (tx) => method(tx, ...args)
  }
  return (tx) => method(tx, ...args)
}

function digest(name: string, args: readonly unknown[]): string {
  return createHash('sha256')
    .update(JSON.stringify([name, args]))
    .digest('hex')
}
