import { createHash } from 'node:crypto'
import type { Apply } from './apply.ts'
import { BoundFence } from './bound-fence.ts'
import { toJson } from './codec.ts'
import type { StoreMode } from './fence-store.ts'
import type { WriteIntent } from './intent.ts'
import type { Outcome } from './outcome.ts'
import type { WriteGuard } from './write-guard.ts'

/** A method of a resource: what it writes, it writes through the transaction it is given. */
export type StorageMethod<Tx> = (tx: Tx, ...args: never[]) => unknown

/** What an instance of a class is, too: it has no index signature. */
type Resource<Tx, Methods> = object & { readonly [Name in keyof Methods]: StorageMethod<Tx> }

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
 * outcome of `guard.write`, errors and atomicity included. The resource may be an instance of a
 * class: inherited methods are wrapped too, and `this` is the resource. Where an intent with an
 * operation id has no fingerprint, the method's name and the JSON of its arguments are it: one
 * operation id on two methods, or on one method with other arguments, is a `mismatch` and not a
 * replay of the wrong result. An argument that JSON would change is a `TypeError` then.
 * @throws TypeError where there is no method
 */
export function fencedStorage<
  Tx,
  Mode extends StoreMode,
  Methods extends Record<string, StorageMethod<Tx>> | Resource<Tx, Methods>,
>(guard: WriteGuard<Tx, Mode>, methods: Methods): FencedStorage<Tx, Mode, Methods> {
  const fenced = methodsOf<Tx>(methods).map(([name, method]) => {
    const call = async (intent: WriteIntent | BoundFence<Tx, Mode>, ...args: never[]) => {
      const given = intent instanceof BoundFence ? intent.intent : intent
      const fingerprint = given.fingerprint ?? fingerprintOf(given, name, args)
      const apply = wrap(methods, method, args) as Apply<Tx, unknown, Mode>
      if (!(intent instanceof BoundFence)) return guard.write({ ...given, fingerprint }, apply)
      if (intent.guard !== guard) throw new TypeError('the bound fence is of another guard')
      // It is asked itself: in a request it keeps count of what was written.
      return intent.write(apply, { fingerprint })
    }
    return [name, call] as const
  })
  return Object.fromEntries(fenced) as FencedStorage<Tx, Mode, Methods>
}

/** The resource's own, and those of its class and of what that extends. */
function methodsOf<Tx>(methods: object): [name: string, method: StorageMethod<Tx>][] {
  if (typeof methods !== 'object' || methods === null) {
    throw new TypeError('a fenced storage needs an object with methods, or an instance of a class')
  }
  const found = new Map<string, unknown>(Object.entries(methods))
  let above: object | null = Object.getPrototypeOf(methods)
  while (above !== null && above !== Object.prototype) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(above))) {
      if (name !== 'constructor' && !found.has(name)) found.set(name, value)
    }
    above = Object.getPrototypeOf(above)
  }
  const callable = [...found].filter(([, value]) => typeof value === 'function')
  if (callable.length === 0) throw new TypeError('a fenced storage needs methods: there are none')
  return callable as [string, StorageMethod<Tx>][]
}

/** Keeps what the guard looks at: whether the method is declared `async`. */
function wrap<Tx>(methods: object, method: StorageMethod<Tx>, args: never[]): (tx: Tx) => unknown {
  const call = (tx: Tx): unknown => Reflect.apply(method, methods, [tx, ...args])
  const waits = Object.prototype.toString.call(method) === '[object AsyncFunction]'
  return waits ? async (tx) => call(tx) : call
}

/** Of a write without an operation id nothing is recorded that could be compared. */
function fingerprintOf(
  { operationId }: WriteIntent,
  name: string,
  args: readonly unknown[],
): string | undefined {
  if (operationId === undefined) return undefined
  // What is left out at the end, and what is undefined there, are the same to a method.
  const given = args.slice(0, args.findLastIndex((each) => each !== undefined) + 1)
  const advice = 'pass plain data, or give the intent a fingerprint'
  const spelled = given.map((each, index) => toJson(each, `${name}: args[${index}]`, advice))
  return createHash('sha256')
    .update(`[${JSON.stringify(name)},[${spelled.join()}]]`)
    .digest('hex')
}
