/** One engine that is measured, and the ids of the rows that it is filled with. */

import type { FencingToken, LeaseStore, StoreMode, WriteGuard } from 'writefence'

export const ENGINES = ['sqlite', 'postgres', 'mariadb', 'redis'] as const
export type Engine = (typeof ENGINES)[number]

/** The verbs whose types do not hang on the engine. */
type GuardVerbs = Pick<WriteGuard<unknown, StoreMode>, 'advance' | 'inspect' | 'prune'>

/** Bytes that each kind of row takes, indexes included: on the disk, of Redis in memory. */
export interface Bytes {
  readonly fences: number
  readonly records: number
  readonly leases: number
}

export interface Site {
  readonly engine: Engine
  /** Version and settings that the figures hang on. */
  readonly about: string
  readonly guard: GuardVerbs
  readonly leases: LeaseStore
  /** The effect alone, committed by itself: one account gets 1. */
  plain(account: number): Promise<unknown>
  /** The same effect, guarded. */
  write(token: FencingToken, operationId: string, account: number): Promise<unknown>
  /** The fences of the jobs from..to-1, in bulk, past the guard. */
  fillFences(from: number, to: number): Promise<void>
  /** Their leases, released. */
  fillLeases(from: number, to: number): Promise<void>
  /** Records from..to-1 of operations that were applied an hour ago, in turns of the first jobs. */
  fillRecords(from: number, to: number, jobs: number): Promise<void>
  /** Does now what a server would do at leisure after so many rows. */
  tidy(): Promise<void>
  bytes(): Promise<Bytes>
  close(): Promise<void>
}

export interface SiteOptions {
  /** Of the pool; engines without one do not look at it. */
  readonly connections?: number
  /** Tells the names of several sites of one process apart. */
  readonly suffix?: string
}

/** Effects go to these; so many that two writes at once seldom meet at one. */
export const ACCOUNTS = 10_000
/** The generation of every fence and lease that was filled in. */
export const GENERATION = 7
export const OWNER = 'worker-1'
export const HOUR_MS = 3_600_000
/** As long as the one that the middleware makes: a SHA-256 in hex. */
export const FINGERPRINT = '5e'.repeat(32)
/** On a machine that is busy with other things no call may fail for being slow. */
export const PATIENT_MS = 60_000

export const jobOf = (index: number) => `import-${String(index).padStart(8, '0')}`
/** As long as those that the lease stores make. */
export const leaseOf = (index: number) => index.toString(16).padStart(32, '0')
export const operationOf = (index: number) => `credit-${String(index).padStart(10, '0')}`

/** A name of one's own on a server that others use too. */
export const ownName = (suffix = '') => `writefence_scaling_${process.pid}${suffix}`

/** `[from, to)` in pieces, so that no statement takes for ever. */
export function pieces(from: number, to: number, size: number): [from: number, to: number][] {
  const count = Math.ceil((to - from) / size)
  return Array.from({ length: count }, (_, i) => {
    const start = from + i * size
    return [start, Math.min(to, start + size)]
  })
}
