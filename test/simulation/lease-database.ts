/** The real SQLite of the lease service. */

import type Database from 'better-sqlite3'
import { openSqlite, SqliteLeaseStore } from 'writefence/sqlite'
import { type Tables, tablesOf } from './tables.ts'

export class LeaseDatabase {
  readonly db: Database.Database
  readonly store: SqliteLeaseStore
  readonly tables: Tables
  /** The service's clock, handed in by the world of the day. */
  now: () => number = () => 0

  constructor() {
    this.db = openSqlite(':memory:')
    this.store = new SqliteLeaseStore(this.db, { now: () => this.now() })
    this.tables = tablesOf(this.db)
  }
}
