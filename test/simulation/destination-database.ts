/** The real SQLite of one destination: the fence store's tables, and the user's own. */

import type Database from 'better-sqlite3'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'
import type { Applied } from './history.ts'
import { type Tables, tablesOf } from './tables.ts'

export type SqliteHandle = Database.Database

interface EffectRow {
  readonly seq: number
  readonly scope: string
  readonly jobId: string
  readonly generation: number
  readonly leaseId: string | null
  readonly operationId: string | null
  readonly call: string
}

export interface FenceRow {
  readonly scope: string
  readonly jobId: string
  readonly generation: number
}

/** Opened once and emptied for each world: opening takes longer than a whole schedule. */
export class DestinationDatabase {
  readonly db: SqliteHandle
  /** The destination's clock, handed in by the world of the day. */
  now: () => number = () => 0
  readonly #stores: SqliteFenceStore<SqliteHandle>[] = []
  #current = 0
  readonly tables: Tables
  readonly #insert: Database.Statement
  readonly #effects: Database.Statement
  readonly #fences: Database.Statement

  constructor() {
    this.db = openSqlite(':memory:')
    this.db.exec(`CREATE TABLE effect (
      seq INTEGER PRIMARY KEY, scope TEXT NOT NULL, job_id TEXT NOT NULL,
      generation INTEGER NOT NULL, lease_id TEXT, operation_id TEXT, call TEXT NOT NULL) STRICT`)
    this.#open()
    this.#insert = this.db.prepare(
      `INSERT INTO effect (scope, job_id, generation, lease_id, operation_id, call)
       VALUES (?, ?, ?, ?, ?, ?)`,
    )
    this.#effects = this.db.prepare(
      `SELECT seq, scope, job_id AS jobId, generation, lease_id AS leaseId,
         operation_id AS operationId, call FROM effect WHERE seq > ? ORDER BY seq`,
    )
    this.#fences = this.db.prepare(
      'SELECT scope, job_id AS jobId, generation FROM writefence_fence ORDER BY scope, job_id',
    )
    this.tables = tablesOf(this.db)
  }

  get store(): SqliteFenceStore<SqliteHandle> {
    const store = this.#stores[this.#current] ?? this.#open()
    this.#stores[this.#current] = store
    return store
  }

  /** Empty, for the next world. */
  clear(): void {
    this.tables.clear()
    this.#current = 0
  }

  /** As a new process would find it: store objects that this world has not used, on its data. */
  reopen(): void {
    this.#current += 1
  }

  /** The user's write, inside the guard's transaction. */
  write(effect: Omit<EffectRow, 'seq'>): void {
    const { scope, jobId, generation, leaseId, operationId, call } = effect
    this.#insert.run(scope, jobId, generation, leaseId, operationId, call)
  }

  /** What has been committed after that one. */
  effectsAfter(seq: number): { readonly seq: number; readonly effect: Omit<Applied, 'event'> }[] {
    return (this.#effects.all(seq) as EffectRow[]).map(({ seq: at, ...row }) => ({
      seq: at,
      effect: {
        ...row,
        leaseId: row.leaseId ?? undefined,
        operationId: row.operationId ?? undefined,
      },
    }))
  }

  fences(): FenceRow[] {
    return this.#fences.all() as FenceRow[]
  }

  #open(): SqliteFenceStore<SqliteHandle> {
    return new SqliteFenceStore(this.db, { now: () => this.now() })
  }
}
