/** What a destination keeps on its engine: all in which the engines differ. */

import type { Apply } from '../../../src/guard/apply.ts'
import type { StoreMode } from '../../../src/guard/fence-store.ts'
import type { WriteGuard } from '../../../src/guard/write-guard.ts'

export type Engine = 'sqlite' | 'postgres' | 'mariadb' | 'redis'

/** One effect. Its nonce is of this very run of it: an answer that names it says the truth. */
export interface Effect {
  readonly job: string
  readonly operation: string
  readonly generation: number
  readonly lease: string
  readonly nonce: string
}

export interface Told {
  readonly nonce: string
}

export interface Bank<Tx, Mode extends StoreMode> {
  readonly guard: WriteGuard<Tx, Mode>
  /** The effect in the guard's transaction. */
  within(effect: Effect): Apply<Tx, Told, Mode>
  /**
   * The effect of a handler that knows of no guard. Once it rejects, nothing of it is under way.
   * @throws NotInserted where it is certain that nothing has happened
   */
  insert(effect: Effect): Promise<void>
  find(job: string, operation: string): Promise<Told | undefined>
  /** How many guarded writes the job has. */
  count(job: string): Promise<number>
}

/** How long an effect may take before it is overdue. */
export function deadlineMs(slowness: number): number {
  return Math.round(600 * slowness)
}

/** How long a store waits for its database. */
export function patienceMs(slowness: number): number {
  return Math.round(1_500 * slowness)
}

/** Nothing was written, nor will be. */
export class NotInserted extends Error {}
