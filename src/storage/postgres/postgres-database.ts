/** The part of node-postgres that the stores use, described structurally; options; errors. */

import { StoreUnavailableError } from '../../errors.ts'
import { checkCount, type OptionNames } from '../../options.ts'

/** Whatever sends one statement on one connection: a client, or a few lines over an ORM's own. */
export interface PostgresQueryable {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>
}

/** What a pool adds to a client that it has handed out. */
export interface PostgresPooled {
  /** Gives the client back; with `true` or an error its connection is closed instead. */
  release(destroy?: boolean | Error): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
  readonly connection?: { readonly stream?: { destroy?(): unknown } } | undefined
}

/** A Pool of node-postgres, or what has its shape. */
export interface PostgresPool<Client extends PostgresQueryable> {
  /** What a pool that calls nobody back may answer. */
  connect(): Promise<Client & PostgresPooled>
  /** Also what TypeScript infers `Client` from: the last overload that a pool declares. */
  connect(
    callback: (error: Error | undefined, client: (Client & PostgresPooled) | undefined) => void,
  ): void
}

/** Where the tables are, and how long is waited. */
export interface PostgresStoreOptions {
  /** In place of the database's clock, for tests: epoch milliseconds. */
  readonly now?: (() => number) | undefined
  /** The PostgreSQL schema of the tables; the first one of the search path unless told. */
  readonly schema?: string | undefined
  /**
   * How long a call may take, in milliseconds, its wait for a connection and for the job's lock
   * included, the callback of a write left out; 5000 unless told.
   */
  readonly timeoutMs?: number | undefined
}

/** The names of what both stores can be told. */
export const STORE_OPTIONS = {
  now: true,
  schema: true,
  timeoutMs: true,
} satisfies OptionNames<PostgresStoreOptions>

/** `query` of one connection, its rows typed by the statement that they come from. */
export type Query = <Row>(text: string, values?: unknown[]) => Promise<readonly Row[]>

/** Epoch milliseconds by the database's clock, read when the statement gets there. */
export const SQL_NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

export function queryOf(client: PostgresQueryable): Query {
  return async <Row>(text: string, values?: unknown[]) => {
    // Without values the simple protocol is used, which takes several statements at once.
    const sent = values === undefined ? client.query(text) : client.query(text, values)
    return (await sent).rows as readonly Row[]
  }
}

// Timers and PostgreSQL's own time-outs end at 2^31 milliseconds; nobody waits for a day.
const LONGEST_TIMEOUT_MS = 24 * 60 * 60 * 1000

/** @throws TypeError or RangeError naming the option */
export function checkTimeout(name: string, value: unknown): number {
  return checkCount(name, value, 1, LONGEST_TIMEOUT_MS)
}

/** The SQLSTATE of an error, looked for behind the wrappers of ORMs too. */
export function sqlState(error: unknown): string | undefined {
  for (let depth = 0; depth < 5 && error instanceof Error; depth += 1, error = error.cause) {
    if ('code' in error && /^[0-9A-Z]{5}$/.test(String(error.code))) return String(error.code)
  }
  return undefined
}

/** The whole transaction can be repeated: 40001 serialization_failure, 40P01 deadlock_detected. */
export function isUndone(error: unknown): boolean {
  const state = sqlState(error)
  return state === '40001' || state === '40P01'
}

const ADVICE: Readonly<Record<string, string>> = {
  '40001': 'the transaction must be repeated from its BEGIN',
  '40P01': 'the transaction must be repeated from its BEGIN',
  '55P03': 'another call had the job locked for too long',
  '42P01': 'the tables are missing: call createSchema(), or run sql/postgres.sql',
  '3F000': 'the tables are missing: call createSchema(), or run sql/postgres.sql',
  '42501': 'the role may not do this: it needs SELECT, INSERT, UPDATE and DELETE on the tables',
}

export function unavailable(error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  const advice = ADVICE[sqlState(error) ?? '']
  return new StoreUnavailableError(
    `PostgreSQL: ${textOf(error)}${advice === undefined ? '' : ` (${advice})`}`,
    { cause: error },
  )
}

/** Node reports a refused connection as an AggregateError, whose own message is empty. */
function textOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '')
    return error.errors.map(textOf).join()
  return error instanceof Error ? error.message : String(error)
}
