/** Transactions of the stores' own, each on a connection of the pool, repeated where undone. */

// Bound at load time: fake timers in a user's tests must not stop his database.
import { clearTimeout, setTimeout } from 'node:timers'
import { StoreUnavailableError } from '../../errors.ts'
import { retry } from '../retry.ts'
import {
  isReadOnly,
  isUndone,
  type MysqlConnection,
  type MysqlPool,
  type MysqlSettings,
  unavailable,
} from './mysql-database.ts'
import { type MysqlServer, MysqlSession, TimedOut } from './mysql-session.ts'
import type { MysqlTables } from './mysql-tables.ts'

/** What work in a transaction came to, and whether it is to be kept. */
interface Ended<T> {
  readonly value: T
  /** False where nothing was changed that should outlast the transaction. */
  readonly commit: boolean
}

/** What is done in a transaction. It is told whether this is its last run. */
export type Work<Connection extends MysqlConnection, T> = (
  session: MysqlSession<Connection>,
  server: MysqlServer,
  last: boolean,
) => Promise<Ended<T>>

/**
 * How a transaction begins. One that a user has left open on a connection of his pool is committed
 * by that; where its isolation is to be set, this has to be said.
 */
const BEGIN = {
  /** Isolated as the session is. Said to write, since a session may be set to read only. */
  write: ['START TRANSACTION READ WRITE'],
  /** One snapshot, which waits for nobody and holds nobody up, whatever the session is set to. */
  read: [
    'COMMIT',
    'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ',
    'START TRANSACTION READ ONLY',
  ],
  /** Without locks on the gaps between rows, which would stop the inserts of live traffic. */
  sweep: [
    'COMMIT',
    'SET TRANSACTION ISOLATION LEVEL READ COMMITTED',
    'START TRANSACTION READ WRITE',
  ],
} as const

export class MysqlTransactions<Connection extends MysqlConnection> {
  readonly #pool: MysqlPool<Connection>
  readonly #tables: MysqlTables
  readonly #timeoutMs: number
  readonly #longestIdleMs: number
  #closed = false

  /** `longestIdleMs` is for how long work may leave its transaction without a statement. */
  constructor(
    pool: MysqlPool<Connection>,
    tables: MysqlTables,
    { timeoutMs }: MysqlSettings,
    longestIdleMs = timeoutMs,
  ) {
    this.#pool = pool
    this.#tables = tables
    this.#timeoutMs = timeoutMs
    this.#longestIdleMs = longestIdleMs
  }

  /** @throws StoreUnavailableError once the store is closed */
  assertOpen(): void {
    if (this.#closed) throw new StoreUnavailableError('the store is closed')
  }

  /** A user's connection, for work inside a transaction of his. */
  join(connection: Connection): MysqlSession<Connection> {
    return new MysqlSession(connection, this.#timeoutMs)
  }

  /** Refuses later calls, and those that still wait for a connection. The pool stays open. */
  close(): void {
    this.#closed = true
  }

  /**
   * Runs the work in a transaction, from the beginning again where the server has undone all of
   * it. Resolves once the commit is durable.
   * @param repeats which errors of the work's own say that it is to be run again
   * @throws StoreUnavailableError for what the server or the driver says, RangeError as it is
   */
  async run<T>(
    kind: keyof typeof BEGIN,
    work: Work<Connection, T>,
    repeats: (error: unknown) => boolean = () => false,
  ): Promise<T> {
    try {
      return await retry(
        (last) => this.onConnection((session) => this.#once(session, kind, work, last)),
        (error) => repeats(error) || isUndone(error),
      )
    } catch (error) {
      if (error instanceof RangeError) throw error
      throw unavailable(error)
    }
  }

  /** Runs the work on a connection of the pool, and gives it back or destroys it. */
  async onConnection<T>(work: (session: MysqlSession<Connection>) => Promise<T>): Promise<T> {
    const connection = await this.#acquire()
    const session = this.join(connection)
    try {
      this.assertOpen()
      return await work(session)
    } finally {
      await session.restore()
      if (session.usable) connection.release()
    }
  }

  async #once<T>(
    session: MysqlSession<Connection>,
    kind: keyof typeof BEGIN,
    work: Work<Connection, T>,
    last: boolean,
  ): Promise<T> {
    let ended: Ended<T>
    try {
      for (const statement of BEGIN[kind]) await session.run(statement)
      const server = await this.#tables.check(session)
      if (kind === 'write') await session.limitIdle(this.#longestIdleMs, server)
      ended = await work(session, server, last)
    } catch (error) {
      await rollBack(session, error)
      throw error
    }
    if (ended.commit) await commit(session)
    else await rollBack(session, undefined)
    return ended.value
  }

  async #acquire(): Promise<Connection & { release(): void }> {
    this.assertOpen()
    const asked = this.#pool.getConnection()
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      const message = `the pool gave no connection within ${this.#timeoutMs} ms`
      timer = setTimeout(() => reject(new TimedOut(message)), this.#timeoutMs)
    })
    try {
      return await Promise.race([asked, late])
    } catch (error) {
      // One that comes after all goes back to where it came from, untouched.
      asked.then(
        (connection) => connection.release(),
        () => {},
      )
      throw error
    } finally {
      clearTimeout(timer)
    }
  }
}

async function commit(session: MysqlSession): Promise<void> {
  try {
    await session.run('COMMIT')
  } catch (error) {
    // A deadlock at the commit is how a cluster says that another node was faster: all is undone.
    // After anything else nobody knows.
    if (!isUndone(error)) session.destroy(error)
    throw error
  }
}

/** Leaves a connection that is fit for the pool, or none. */
async function rollBack(session: MysqlSession, error: unknown): Promise<void> {
  if (!session.usable) return
  // After a failover the pool would otherwise hand out connections to the old primary for ever.
  if (isReadOnly(error)) return session.destroy(error)
  try {
    await session.run('ROLLBACK')
  } catch (failure) {
    session.destroy(failure)
  }
}
