/** A real store whose calls fail when told to: what a network or a full disk does to one. */

import { type FenceStore, type StoreMode, StoreUnavailableError } from 'writefence'

/** `before`: nothing was done; `after`: it was done, and the answer is lost. */
export type Turn = 'pass' | 'before' | 'after'

export const cause = new Error('connection reset')

export function faultyStore<Tx, Mode extends StoreMode>(store: FenceStore<Tx, Mode>) {
  const turns: Turn[] = []
  const transact: FenceStore<Tx, Mode>['transact'] = async (unit) => {
    const turn = turns.shift() ?? 'pass'
    if (turn === 'before') throw new StoreUnavailableError('no answer', { cause })
    const done = await store.transact(unit)
    if (turn === 'after') throw new StoreUnavailableError('no answer', { cause })
    return done
  }
  const faulty = new Proxy(store, {
    get(target, name) {
      if (name === 'transact') return transact
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  /** How the next transactions go, in turn. */
  const plan = (...next: Turn[]) => void turns.push(...next)
  return { store: faulty, plan }
}
