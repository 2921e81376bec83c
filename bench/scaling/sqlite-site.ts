/** A file in a folder of its own, opened as `openSqlite` does. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Database } from 'better-sqlite3'
import { type FencingToken, type LeaseStore, WriteGuard } from 'writefence'
import { openSqlite, SqliteFenceStore, SqliteLeaseStore } from 'writefence/sqlite'
import {
  ACCOUNTS,
  type Bytes,
  FINGERPRINT,
  GENERATION,
  HOUR_MS,
  OWNER,
  pieces,
  type Site,
} from './site.ts'

const MILLION = 1_000_000
const NOW = "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
const numbers = (from: number, to: number) => `WITH RECURSIVE n (i) AS (
  SELECT ${from} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${to})`

export function createAccounts(db: Database): void {
  db.exec('CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL)')
  db.exec(`INSERT INTO account ${numbers(0, ACCOUNTS)} SELECT i, 0 FROM n`)
}

/** The effect: what both sides of the comparison do. */
export function creditStatement(db: Database): (account: number) => void {
  const update = db.prepare('UPDATE account SET balance = balance + 1 WHERE id = ?')
  return (account) => void update.run(account)
}

export class SqliteSite implements Site {
  readonly engine = 'sqlite'
  readonly about: string
  readonly db: Database
  readonly guard: WriteGuard<Database, 'sync'>
  readonly leases: LeaseStore
  readonly #folder: string
  readonly #credit: (account: number) => void
  readonly #plain: (account: number) => void

  private constructor(folder: string) {
    this.#folder = folder
    this.db = openSqlite(join(folder, 'site.sqlite'))
    this.guard = new WriteGuard(new SqliteFenceStore(this.db))
    this.leases = new SqliteLeaseStore(this.db)
    createAccounts(this.db)
    this.#credit = creditStatement(this.db)
    this.#plain = this.db.transaction(this.#credit).immediate
    const version = this.db.prepare('SELECT sqlite_version()').pluck().get()
    this.about = `SQLite ${version}, WAL, synchronous FULL`
  }

  static async open(): Promise<SqliteSite> {
    return new SqliteSite(mkdtempSync(join(tmpdir(), 'writefence-scaling-')))
  }

  async plain(account: number): Promise<void> {
    this.#plain(account)
  }

  write(token: FencingToken, operationId: string, account: number): Promise<unknown> {
    const intent = { token, operationId, fingerprint: FINGERPRINT }
    return this.guard.write(intent, () => this.#credit(account))
  }

  async fillFences(from: number, to: number): Promise<void> {
    for (const [start, end] of pieces(from, to, MILLION)) {
      this.db.exec(`INSERT INTO writefence_fence ${numbers(start, end)}
        SELECT '', printf('import-%08d', i), ${GENERATION}, 'lease', printf('%032x', i), 0 FROM n`)
    }
  }

  async fillLeases(from: number, to: number): Promise<void> {
    for (const [start, end] of pieces(from, to, MILLION)) {
      this.db.exec(`INSERT INTO writefence_lease (job_id, generation, status, owner, lease_id,
          ended_by, lapsed, ended_at) ${numbers(start, end)}
        SELECT printf('import-%08d', i), ${GENERATION}, 'released', '${OWNER}',
          printf('%032x', i), 'holder', 0, ${NOW} FROM n`)
    }
  }

  async fillRecords(from: number, to: number, jobs: number): Promise<void> {
    for (const [start, end] of pieces(from, to, MILLION)) {
      this.db.exec(`INSERT INTO writefence_operation (scope, job_id, operation_id, generation,
          fingerprint, applied_at) ${numbers(start, end)}
        SELECT '', printf('import-%08d', i % ${jobs}), printf('credit-%010d', i), ${GENERATION},
          '${FINGERPRINT}', ${NOW} - ${HOUR_MS} FROM n`)
    }
  }

  async tidy(): Promise<void> {
    this.db.pragma('wal_checkpoint(TRUNCATE)')
  }

  async bytes(): Promise<Bytes> {
    // Counted, not asked of the file: the pages of a table are not told apart in there.
    const sizes = this.db
      .prepare(`SELECT tbl_name, sum(pgsize) FROM dbstat JOIN sqlite_schema USING (name)
        WHERE aggregate = TRUE GROUP BY 1`)
      .raw()
      .all() as [table: string, bytes: number][]
    const of = (table: string) => new Map(sizes).get(`writefence_${table}`) ?? 0
    return { fences: of('fence'), records: of('operation'), leases: of('lease') }
  }

  async close(): Promise<void> {
    await this.guard.close()
    await this.leases.close()
    this.db.close()
    rmSync(this.#folder, { recursive: true })
  }
}
