/** What worlds need of real databases, whatever engine they are of. */

import type { FenceStore, LeaseStore } from 'writefence'
import type { Applied } from './history.ts'

// Worlds have no real time: a call that takes long on a busy machine must not fail for that.
export const PATIENT_MS = 600_000

/** Worlds are built once for both modes: what they get back they await, promise or not. */
export type Store = FenceStore<unknown, 'async'>

/** At once from a synchronous engine, a promise of it from the others. */
type Soon<T> = T | Promise<T>

/** A row of the user's own table. */
export interface EffectRow {
  readonly scope: string
  readonly jobId: string
  readonly generation: number
  readonly leaseId: string | undefined
  readonly operationId: string | undefined
  readonly call: string
}

export interface FenceRow {
  readonly scope: string
  readonly jobId: string
  readonly generation: number
}

/** What a destination has that was committed. */
export interface Observed {
  /** The effects after the one asked for, in their order; `seq` rises, perhaps with gaps. */
  readonly effects: readonly { readonly seq: number; readonly effect: Omit<Applied, 'event'> }[]
  /** All fences, in one order. */
  readonly fences: readonly FenceRow[]
}

export interface LeaseDatabase {
  readonly store: LeaseStore
  /** The service's clock, handed in by the world of the day. */
  now: () => number
  /** Empties it, for the next world. */
  clear(): Soon<void>
  /** All rows, spelled the same for states from which the same can follow. */
  save(): Soon<string>
  /** Puts back what was saved, and nothing else. */
  load(saved: string): Soon<void>
}

export interface DestinationDatabase {
  /** Of the process that runs now. */
  readonly store: Store
  /** The destination's clock, handed in by the world of the day. */
  now: () => number
  /** Empties it, for the next world. */
  clear(): Soon<void>
  /** As a new process would find it: a store object that this world has not used, on its data. */
  reopen(): void
  /** The user's write, inside the guard's transaction. */
  write(tx: unknown, effect: EffectRow): Soon<void>
  observe(after: number): Soon<Observed>
  /** All rows, spelled the same for states from which the same can follow. */
  digest(): Soon<string>
}

/** A row of it as a driver has it. */
export interface FoundEffect extends Omit<EffectRow, 'leaseId' | 'operationId'> {
  readonly seq: number
  readonly leaseId: string | null
  readonly operationId: string | null
}

export function effectOf({ seq, ...row }: FoundEffect) {
  const leaseId = row.leaseId ?? undefined
  const operationId = row.operationId ?? undefined
  return { seq, effect: { ...row, leaseId, operationId } }
}

/**
 * One lease service and some destinations, of one world at a time. Servers answer in real time,
 * which worlds do not have: stores bind their timers when they are loaded, before those of a world
 * are put in place, and are told to wait long enough for no time-out to fire; drivers are set up so
 * that they need no timers. A store has one connection, so that calls which come together are
 * answered in one order.
 */
export interface Databases {
  readonly leases: LeaseDatabase
  readonly destinations: ReadonlyMap<string, DestinationDatabase>
  /** Leaves nothing behind at the server. */
  end(): Promise<void>
}

/** Store objects, one for each process that a destination has had; later worlds use them again. */
export class Processes {
  readonly #open: () => Store
  readonly #stores: Store[] = []
  #current = 0

  constructor(open: () => Store) {
    this.#open = open
  }

  get store(): Store {
    const store = this.#stores[this.#current] ?? this.#open()
    this.#stores[this.#current] = store
    return store
  }

  next(): void {
    this.#current += 1
  }

  /** Begins with the first one again. */
  rewind(): void {
    this.#current = 0
  }

  async close(): Promise<void> {
    await Promise.all(this.#stores.map((store) => store.close()))
  }
}
