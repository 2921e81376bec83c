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
import { MysqlSession, TimedOut } from './mysql-session.ts'

/** What work in a transaction came to, and whether it is to be kept. */
export interface Ended<T> {
  readonly value: T
  /** False where nothing was changed that should outlast the transaction. */
  readonly commit: boolean
}

/** How a transaction begins. */
const BEGIN = {
  /** Isolated as the session is. Said to write, since a session may be set to read only. */
  write: ['START TRANSACTION READ WRITE'],
  /** One snapshot, which waits for nobody and holds nobody up, whatever the session is set to. */
  read: ['SET TRANSACTION ISOLATION LEVEL REPEATABLE READ', 'START TRANSACTION READ ONLY'],
  /** Without locks on the gaps between rows, which would stop the inserts of live traffic. */
  sweep: ['SET TRANSACTION ISOLATION LEVEL READ COMMITTED', 'START TRANSACTION READ WRITE'],
} as const

export class MysqlTransactions<Connection extends MysqlConnection> {
  readonly #pool: MysqlPool<Connection>
  readonly #timeoutMs: number
  #closed = false

  constructor(pool: MysqlPool<Connection>, { timeoutMs }: MysqlSettings) {
    this.#pool = pool
    this.#timeoutMs = timeoutMs
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
   * it. `work` is told whether this is its last run. Resolves once the commit is durable.
   * @param repeats which errors of the work's own say that it is to be run again
   * @throws StoreUnavailableError for what the server or the driver says, RangeError as it is
   */
  async run<T>(
    kind: keyof typeof BEGIN,
    work: (session: MysqlSession<Connection>, last: boolean) => Promise<Ended<T>>,
    repeats: (error: unknown) => boolean = () => false,
  ): Promise<T> {
    try {
      return await retry(
        (last) => this.onConnection((session) => once(session, kind, (s) => work(s, last))),
        (error) => isUndone(error) || repeats(error),
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
      if (session.usable) connection.release()
    }
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

async function once<Connection extends MysqlConnection, T>(
  session: MysqlSession<Connection>,
  kind: keyof typeof BEGIN,
  work: (session: MysqlSession<Connection>) => Promise<Ended<T>>,
): Promise<T> {
  let ended: Ended<T>
  try {
    for (const statement of BEGIN[kind]) await session.run(statement)
    ended = await work(session)
  } catch (error) {
    await rollBack(session, error)
    throw error
  }
  if (!ended.commit) {
    await rollBack(session, undefined)
    return ended.value
  }
  try {
    await session.run('COMMIT')
  } catch (error) {
    // A deadlock at the commit is how a cluster says that another node was faster, and undoes all.
    if (!isUndone(error)) session.destroy(asError(error))
    throw error
  }
  return ended.value
}

/** Leaves a connection that is fit for the pool, or none. */
async function rollBack(session: MysqlSession, error: unknown): Promise<void> {
  if (!session.usable) return
  // After a failover the pool would otherwise hand out connections to the old primary for ever.
  if (isReadOnly(error)) return session.destroy(asError(error))
  try {
    await session.run('ROLLBACK')
  } catch (failure) {
    session.destroy(asError(failure))
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
