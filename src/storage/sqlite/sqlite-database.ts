/** The part of better-sqlite3 that the stores use, described structurally. */

import { StoreUnavailableError } from '../../errors.ts'
import { checkOptionNames, type OptionNames } from '../../options.ts'

/** A prepared statement of better-sqlite3. */
export interface SqliteStatement {
  run(...parameters: unknown[]): { readonly changes: number }
  get(...parameters: unknown[]): unknown
  all(...parameters: unknown[]): unknown[]
  safeIntegers(toggle?: boolean): unknown
  raw(toggle?: boolean): SqliteStatement
}

/** A handle of better-sqlite3, opened by {@link openSqlite} or by the user. */
export interface SqliteDatabase {
  readonly name: string
  readonly memory: boolean
  readonly open: boolean
  readonly inTransaction: boolean
  prepare(sql: string): SqliteStatement
  exec(sql: string): unknown
  unsafeMode(unsafe: boolean): unknown
  close(): unknown
}

/** The time of the store: handed in by tests, SQLite's own clock otherwise. */
export interface SqliteStoreOptions {
  /** In place of the database's clock, for tests: epoch milliseconds. */
  readonly now?: (() => number) | undefined
  /** How long a call may wait for the database, in milliseconds; 5000 unless told. */
  readonly busyTimeoutMs?: number | undefined
  /** Whether calls of one turn of the event loop share a commit; true unless told. */
  readonly groupCommit?: boolean | undefined
}

const NAMES = {
  now: true,
  busyTimeoutMs: true,
  groupCommit: true,
} satisfies OptionNames<SqliteStoreOptions>

/** Before a store sets its tables up. @throws TypeError naming an option that there is not */
export function checkSqliteOptions(options: SqliteStoreOptions): void {
  checkOptionNames(options, NAMES)
}

/** Epoch milliseconds by the database's clock, read when the statement runs. */
export const SQL_NOW = "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)"

/** Prepares a statement whose integers are numbers, whatever the handle's default is. */
export function prepare(db: SqliteDatabase, sql: string): SqliteStatement {
  const statement = db.prepare(sql)
  statement.safeIntegers(false)
  return statement
}

/** Whether another connection has the lock: worth another try. */
export function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_BUSY') || codeOf(error).startsWith('SQLITE_LOCKED')
}

/**
 * Whether an iterator is open on the handle: until it is closed, the driver refuses all statements
 * that are no reads, the end of a transaction among them.
 */
export function isOccupied(error: unknown): boolean {
  return error instanceof TypeError && error.message.includes('busy executing a query')
}

/** Whether a commit failed for what the effects left behind: a deferred foreign key. */
export function isConstraint(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_CONSTRAINT')
}

export function unavailable(error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  const text = error instanceof Error ? error.message : String(error)
  return new StoreUnavailableError(`SQLite: ${text}`, { cause: error })
}

function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return ''
  return String(error.code)
}
