/** Transactions on connections of a pool: limited in time, and leaving the pool as healthy. */

// Bound at load time: fake timers in a user's tests must not stop his database.
import { performance } from 'node:perf_hooks'
import { clearTimeout, setTimeout } from 'node:timers'
import { StoreUnavailableError } from '../../errors.ts'
import {
  type PostgresPool,
  type PostgresPooled,
  type PostgresQueryable,
  type Query,
  queryOf,
} from './postgres-database.ts'
import { assertTables, type PostgresComponent, type PostgresTables } from './postgres-schema.ts'

/** Waits that long. `onLate` sees to it that what did not come in time can do no more harm. */
export function bounded<T>(
  work: Promise<T>,
  ms: number,
  onLate: () => void,
  what = 'answer',
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const late = () => {
      onLate()
      reject(new StoreUnavailableError(`PostgreSQL: no ${what} within ${Math.ceil(ms)} ms`))
    }
    const timer = setTimeout(late, Math.max(0, ms))
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** One connection that was handed out here, for one transaction. */
export class PostgresSession<Client extends PostgresQueryable> {
  readonly client: Client & PostgresPooled
  readonly #send: Query
  #endsAt: number
  #gone = false

  constructor(client: Client & PostgresPooled, endsAt: number) {
    this.client = client
    this.#send = queryOf(client)
    this.#endsAt = endsAt
  }

  readonly query: Query = (text, values) => {
    if (this.#gone) return Promise.reject(new StoreUnavailableError('the connection was closed'))
    return bounded(this.#send(text, values), this.remainingMs, () => this.destroy())
  }

  get remainingMs(): number {
    return Math.max(1, this.#endsAt - performance.now())
  }

  /** Lets the callback of a write take its own time, and the statements after it theirs. */
  async pause<T>(work: Promise<T>, longestMs: number, afterwardsMs: number): Promise<T> {
    try {
      return await bounded(work, longestMs, () => this.destroy())
    } finally {
      this.#endsAt = performance.now() + afterwardsMs
    }
  }

  release(): void {
    if (this.#gone) return
    this.#gone = true
    giveUp(this.client)
  }

  /** Rolls back, so that nothing is left running; a connection that cannot is closed. */
  async abandon(): Promise<void> {
    try {
      await this.query('ROLLBACK')
      this.release()
    } catch {
      this.destroy()
    }
  }

  /** Closes the connection: whatever was not committed never will be. */
  destroy(): void {
    if (this.#gone) return
    this.#gone = true
    // The pool would say goodbye first, which a server that hangs never answers.
    this.client.connection?.stream?.destroy?.()
    this.client.release(true)
  }
}

export interface PostgresTransactionsOptions {
  readonly component: PostgresComponent
  readonly tables: PostgresTables
  readonly timeoutMs: number
  /** The longest that one statement may run, or the connection be idle, in milliseconds. */
  readonly longestMs: number
}

export interface RunOptions {
  /** Whether the tables are yet to be made. */
  readonly setUp?: boolean | undefined
  /** What is left of the time that the call may take. */
  readonly timeoutMs?: number | undefined
}

export class PostgresTransactions<Client extends PostgresQueryable> {
  readonly #pool: PostgresPool<Client>
  readonly #options: PostgresTransactionsOptions
  #known = false
  #closed = false

  constructor(pool: PostgresPool<Client>, options: PostgresTransactionsOptions) {
    this.#pool = pool
    this.#options = options
  }

  /**
   * Runs `work` after a BEGIN; it ends the transaction itself, last thing. Where it throws, the
   * transaction is rolled back, or its connection closed, before the error is thrown on.
   */
  async run<T>(
    work: (session: PostgresSession<Client>) => Promise<T>,
    { setUp = false, timeoutMs = this.#options.timeoutMs }: RunOptions = {},
  ): Promise<T> {
    const endsAt = performance.now() + timeoutMs
    const session = new PostgresSession(await this.#connect(timeoutMs), endsAt)
    try {
      this.assertOpen()
      await session.query(begin(session.remainingMs, this.#options.longestMs))
      if (!setUp) await this.assertTables(session.query)
      const value = await work(session)
      session.release()
      return value
    } catch (error) {
      await session.abandon()
      throw error
    }
  }

  /** Asks once whether the tables are there. @throws StoreUnavailableError where they are not */
  async assertTables(query: Query): Promise<void> {
    if (this.#known) return
    await assertTables(query, this.#options.component, this.#options.tables)
    this.#known = true
  }

  /** @throws StoreUnavailableError once it was closed */
  assertOpen(): void {
    if (this.#closed) throw new StoreUnavailableError('the store is closed')
  }

  close(): void {
    this.#closed = true
  }

  async #connect(timeoutMs: number): Promise<Client & PostgresPooled> {
    this.assertOpen()
    const connecting = handedOut(this.#pool)
    // Where it comes too late, it goes straight back.
    const giveBack = () => void connecting.then(giveUp).catch(() => {})
    return bounded(connecting, timeoutMs, giveBack, 'connection')
  }
}

/**
 * A client of the pool. A connection that is lost while no statement runs is an event, and would be
 * an uncaught exception; the next statement fails anyway. The event can come in the same packet as
 * what lets the client in: who waits for a promise hears of the client too late.
 */
function handedOut<Client extends PostgresQueryable>(
  pool: PostgresPool<Client>,
): Promise<Client & PostgresPooled> {
  return new Promise((resolve, reject) => {
    const take = (client: Client & PostgresPooled) => {
      client.on('error', ignored)
      resolve(client)
    }
    const promised: unknown = pool.connect((error, client) => {
      if (client === undefined) reject(error)
      else take(client)
    })
    // A pool of that shape may know promises only.
    if (promised instanceof Promise) promised.then(take, reject)
  })
}

function giveUp(client: PostgresPooled): void {
  client.removeListener('error', ignored)
  client.release()
}

/** In each transaction of the store's own, around what the unit does. */
export const UNIT_SAVEPOINT = 'writefence_unit'

/**
 * All of it ends with the transaction: behind a pooler the next one gets another session. The wait
 * for a lock ends a little before ours does, so that the connection outlives it. What goes on at a
 * server whose client was stopped, or is gone, ends by the other two. A commit must be durable when
 * it is answered; what is stricter than `on` stays. The savepoint costs no message of its own here.
 */
function begin(remainingMs: number, longestMs: number): string {
  return `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
    SET LOCAL lock_timeout = ${Math.ceil(remainingMs * 0.8)};
    SET LOCAL statement_timeout = ${longestMs};
    SET LOCAL idle_in_transaction_session_timeout = ${longestMs};
    SELECT set_config('synchronous_commit', 'on', true)
      WHERE current_setting('synchronous_commit') = 'off';
    SAVEPOINT ${UNIT_SAVEPOINT}`
}

function ignored(): void {}
