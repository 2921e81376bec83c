/** Worlds on real SQLite, in memory. */

import type Database from 'better-sqlite3'
import { openSqlite, SqliteFenceStore, SqliteLeaseStore } from 'writefence/sqlite'
import {
  type Databases,
  type DestinationDatabase,
  type EffectRow,
  effectOf,
  type FenceRow,
  type FoundEffect,
  type LeaseDatabase,
  type Observed,
  Processes,
  type Store,
} from '../databases.ts'

type Handle = Database.Database
type Rows = readonly (readonly (readonly unknown[])[])[]

/** Opened once and emptied for each world: opening takes longer than a whole schedule. */
export async function openSqliteDatabases(names: readonly string[]): Promise<Databases> {
  const leases = new SqliteLeases()
  const destinations = new Map(names.map((name) => [name, new SqliteDestination()]))
  const end = async () => {
    for (const { db } of [leases, ...destinations.values()]) db.close()
  }
  return { leases, destinations, end }
}

class SqliteLeases implements LeaseDatabase {
  readonly db: Handle
  readonly store: SqliteLeaseStore
  readonly #tables: Tables
  now: () => number = () => 0

  constructor() {
    this.db = openSqlite(':memory:')
    this.store = new SqliteLeaseStore(this.db, { now: () => this.now() })
    this.#tables = new Tables(this.db)
  }

  clear(): void {
    this.#tables.clear()
  }

  save(): string {
    return this.#tables.spelled()
  }

  load(saved: string): void {
    this.#tables.load(JSON.parse(saved) as Rows)
  }
}

class SqliteDestination implements DestinationDatabase {
  readonly db: Handle
  now: () => number = () => 0
  readonly #processes: Processes
  readonly #tables: Tables
  readonly #insert: Database.Statement
  readonly #effects: Database.Statement
  readonly #fences: Database.Statement

  constructor() {
    this.db = openSqlite(':memory:')
    this.db.exec(`CREATE TABLE effect (
      seq INTEGER PRIMARY KEY, scope TEXT NOT NULL, job_id TEXT NOT NULL,
      generation INTEGER NOT NULL, lease_id TEXT, operation_id TEXT, call TEXT NOT NULL) STRICT`)
    const now = () => this.now()
    // The one cast: it gets its own handle back, and answers at once.
    const open = () => new SqliteFenceStore(this.db, { now }) as unknown as Store
    this.#processes = new Processes(open)
    // Sets its tables up.
    void this.store
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
    this.#tables = new Tables(this.db)
  }

  get store(): Store {
    return this.#processes.store
  }

  clear(): void {
    this.#tables.clear()
    this.#processes.rewind()
  }

  reopen(): void {
    this.#processes.next()
  }

  write(_: unknown, effect: EffectRow): void {
    const { scope, jobId, generation, leaseId = null, operationId = null, call } = effect
    this.#insert.run(scope, jobId, generation, leaseId, operationId, call)
  }

  observe(after: number): Observed {
    const effects = (this.#effects.all(after) as FoundEffect[]).map(effectOf)
    return { effects, fences: this.#fences.all() as FenceRow[] }
  }

  digest(): string {
    return this.#tables.spelled()
  }
}

/** All rows of a database, whatever its tables are; `writefence_schema` stays as it is. */
class Tables {
  readonly #tables: readonly {
    readonly all: Database.Statement
    readonly clear: Database.Statement
    readonly insert: Database.Statement
  }[]

  constructor(db: Handle) {
    const names = db
      .prepare(
        `SELECT name FROM sqlite_schema
         WHERE type = 'table' AND name <> 'writefence_schema' ORDER BY name`,
      )
      .pluck()
      .all() as string[]
    this.#tables = names.map((name) => {
      const all = db.prepare(`SELECT * FROM ${name}`).raw()
      const marks = all.columns().map(() => '?')
      const insert = db.prepare(`INSERT INTO ${name} VALUES (${marks.join(', ')})`)
      return { all, clear: db.prepare(`DELETE FROM ${name}`), insert }
    })
  }

  /** Every row of every table, in the order of their keys. */
  spelled(): string {
    return JSON.stringify(this.#tables.map(({ all }) => all.all()))
  }

  clear(): void {
    for (const table of this.#tables) table.clear.run()
  }

  load(rows: Rows): void {
    this.clear()
    for (const [i, { insert }] of this.#tables.entries()) {
      for (const row of rows[i] ?? []) insert.run(...row)
    }
  }
}
