/** What the laws of a fence store need to know of an engine. */

import type { Answer, FenceStore, StoreMode } from '../guard/fence-store.ts'

/**
 * A fresh, empty database with one list of texts in it: the effects of a law append to the list,
 * through the transaction that they are given. Each law gets a context of its own.
 */
export interface FenceStoreContext<Tx, Mode extends StoreMode> {
  /**
   * A further store on the same data, by a handle (connection, pool, client) of its own. It takes
   * `now` for the time of the store; the engine's own clock where there is none.
   */
  open(now?: () => number): Promise<FenceStore<Tx, Mode>>
  /** Appends to the list within the transaction. */
  append(tx: Tx, text: string): Answer<Mode, void>
  /** The committed texts in the order in which they were appended. */
  log(): Promise<string[]>
  /** Runs `body` in a transaction of the user's own: commits it, or rolls back where it throws. */
  transaction<T>(body: (tx: Tx) => Answer<Mode, T>): Promise<T>
}

/** One law of the port: a sentence, and code that throws where an engine breaks it. */
export interface FenceStoreLaw {
  readonly name: string
  run<Tx, Mode extends StoreMode>(context: FenceStoreContext<Tx, Mode>): Promise<void>
}
