/** The part of mysql2 that the stores use, described structurally, and how values reach its SQL. */

import { StoreUnavailableError } from '../../errors.ts'
import { checkDuration, checkOptionNames, type OptionNames } from '../../options.ts'

/** A statement as it is sent: nothing in it is left to how the user has set up his pool. */
export interface MysqlQuery {
  sql: string
  namedPlaceholders: boolean
  rowsAsArray: boolean
  nestTables: boolean
  typeCast: (field: MysqlField) => Buffer | null
}

/** A column of a row, as mysql2 hands it to `typeCast`. */
export interface MysqlField {
  buffer(): Buffer | null
}

/** A connection of `mysql2/promise`, of a pool or on its own. */
export interface MysqlConnection {
  query(query: MysqlQuery): Promise<[unknown, unknown]>
  destroy(): void
}

/** A pool of `mysql2/promise`; `pool.promise()` makes one of a pool that takes callbacks. */
export interface MysqlPool<Connection extends MysqlConnection = MysqlConnection> {
  getConnection(): Promise<Connection & { release(): void }>
}

/** What both stores take; every time is in milliseconds. */
export interface MysqlStoreOptions {
  /** In place of the server's clock, for tests: epoch milliseconds. */
  readonly now?: (() => number) | undefined
  /**
   * How long the pool may take to give a connection, and the server to answer one statement; 5000
   * unless told. Waiting for another transaction of the same job is bounded on its own, by as
   * many whole seconds.
   */
  readonly timeoutMs?: number | undefined
  /**
   * The database of the tables; that of the connection unless told. To be told where connections
   * of the pool change theirs, or each database would have fences of its own.
   */
  readonly database?: string | undefined
  /** What the names of the tables begin with; `writefence_` unless told. */
  readonly tablePrefix?: string | undefined
}

/** What a fence store takes besides; every time is in milliseconds. */
export interface MysqlFenceStoreOptions extends MysqlStoreOptions {
  /** How long the callback of a write may take; 30 000 unless told. It holds the job meanwhile. */
  readonly effectTimeoutMs?: number | undefined
}

/** The options, checked. */
export interface MysqlSettings {
  readonly now: (() => number) | undefined
  readonly timeoutMs: number
  readonly database: string | undefined
  readonly tablePrefix: string
}

const LEASE_STORE = {
  now: true,
  timeoutMs: true,
  database: true,
  tablePrefix: true,
} satisfies OptionNames<MysqlStoreOptions>

const FENCE_STORE = {
  ...LEASE_STORE,
  effectTimeoutMs: true,
} satisfies OptionNames<MysqlFenceStoreOptions>

/** @throws TypeError or RangeError naming the option */
export function checkMysqlOptions(
  options: MysqlStoreOptions,
  component: 'fence' | 'lease',
): MysqlSettings {
  checkOptionNames(options, component === 'fence' ? FENCE_STORE : LEASE_STORE)
  const { now, timeoutMs = 5000, database, tablePrefix = 'writefence_' } = options
  if (database !== undefined && typeof database !== 'string') {
    throw new TypeError('database must be a string')
  }
  if (database !== undefined && !/^[^\p{Cc}/\\.]{1,64}$/u.test(database)) {
    throw new RangeError('database must be a name of 1 to 64 characters, without dots and slashes')
  }
  if (typeof tablePrefix !== 'string') throw new TypeError('tablePrefix must be a string')
  // 64 characters are the longest name of a table, and it goes into SQL as it is.
  if (!/^[a-z_][a-z0-9_]{0,39}$/i.test(tablePrefix)) {
    throw new RangeError(
      'tablePrefix must be 1 to 40 of a-z, 0-9 and _, not beginning with a digit',
    )
  }
  return {
    now,
    timeoutMs: checkDuration('timeoutMs', timeoutMs),
    database,
    tablePrefix,
  }
}

/** @throws TypeError for what is no pool of promises */
export function checkMysqlPool(pool: unknown): void {
  checkPromises('pool', pool, 'getConnection')
}

/** @throws TypeError for what is no connection of promises */
export function checkMysqlConnection(connection: unknown): void {
  checkPromises('tx', connection, 'query')
}

/** What takes callbacks has the method as well, but answers nothing that can be awaited. */
function checkPromises(name: string, value: unknown, method: string): void {
  const has = (member: string) =>
    typeof value === 'object' && value !== null && typeof Reflect.get(value, member) === 'function'
  if (!has(method)) throw new TypeError(`${name} must come from mysql2/promise`)
  if (has('promise')) throw new TypeError(`${name} takes callbacks: pass ${name}.promise()`)
}

/**
 * A text or bytes as SQL, `NULL` where absent. Hexadecimal, since it means the same under every
 * character set of the connection, every `sql_mode` and every option of the driver.
 */
export function bytes(value: string | undefined): string {
  return value === undefined ? 'NULL' : `X'${Buffer.from(value, 'utf8').toString('hex')}'`
}

/**
 * Epoch milliseconds by the server's clock, read when the statement begins: to be read after a
 * lock was won it has to stand in a later statement. UTC, whatever time zone the session has.
 */
export const SQL_NOW = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)"

/** MySQL's numbers of the errors that decide what is done next. */
const ERRORS = {
  deadlock: 1213,
  lockWait: 1205,
  /** MariaDB, `innodb_snapshot_isolation`: a row is newer than what the transaction sees. */
  rowHasChanged: 1020,
  noSavepoint: 1305,
  noTable: 1146,
  denied: 1142,
  readOnly: [1290, 1792, 1836],
} as const

// Query builders wrap the errors of drivers, a few deep.
const MAX_CAUSES = 8

/** Whether the error, or what it was made of, has one of the numbers. */
function hasNumber(error: unknown, ...numbers: readonly number[]): boolean {
  let each = error
  for (let depth = 0; depth < MAX_CAUSES; depth += 1) {
    if (typeof each !== 'object' || each === null) return false
    if ('errno' in each && numbers.includes(each.errno as number)) return true
    each = 'cause' in each ? each.cause : undefined
  }
  return false
}

/** Whether the server has undone the whole transaction, so that it may be repeated. */
export const isUndone = (error: unknown) => hasNumber(error, ERRORS.deadlock, ERRORS.rowHasChanged)

/** Whether the transaction that had the savepoint is over. */
export const isSavepointGone = (error: unknown) => hasNumber(error, ERRORS.noSavepoint)

export const isNoTable = (error: unknown) => hasNumber(error, ERRORS.noTable)

/** Whether the server takes no writes (any more): another connection may find one that does. */
export const isReadOnly = (error: unknown) => hasNumber(error, ...ERRORS.readOnly)

/** The error of a driver or server as the port has it. */
export function unavailable(error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  const text = error instanceof Error ? error.message : String(error)
  return new StoreUnavailableError(`MySQL: ${text}${advice(error)}`, { cause: error })
}

/** What to do where there are no tables. */
export const HOW_TO_CREATE = 'run createSchema(), or sql/mysql.sql'

function advice(error: unknown): string {
  if (isNoTable(error)) return ` (${HOW_TO_CREATE})`
  if (hasNumber(error, ERRORS.lockWait)) return ' (another transaction has the job)'
  if (!hasNumber(error, ERRORS.denied)) return ''
  return ' (the user needs SELECT, INSERT, UPDATE and DELETE on the tables)'
}
