/** One connection while a store uses it: statements that are bounded in time, and their answers. */

// Bound at load time: fake timers in a user's tests must not stop his database.
import { clearTimeout, setTimeout } from 'node:timers'
import type { MysqlConnection, MysqlField, MysqlQuery } from './mysql-database.ts'

/** A row by the names of its columns; all values are the bytes that the server sent as text. */
export type MysqlRow<Column extends string = string> = Record<Column, Buffer | null>

/** What a store has to know of the server. */
export interface MysqlServer {
  readonly kind: 'MariaDB' | 'MySQL'
  /** The longest statement that it takes, in bytes. */
  readonly maxPacket: number
}

/** A whole number of a column; 0 where it is NULL. */
export function toNumber(value: Buffer | null | undefined): number {
  return Number(value?.toString() ?? 0)
}

/** The text of a column; `undefined` where it is NULL. */
export function toText(value: Buffer | null | undefined): string | undefined {
  return value?.toString('utf8') ?? undefined
}

/** Did not answer in time. Its connection is gone: whether it did what it was told is not known. */
export class TimedOut extends Error {}

// Flags of the server's OK packet, SERVER_STATUS_IN_TRANS and SERVER_STATUS_AUTOCOMMIT.
const IN_TRANSACTION = 1
const AUTOCOMMIT = 2

export class MysqlSession<Connection extends MysqlConnection = MysqlConnection> {
  readonly connection: Connection
  readonly #timeoutMs: number
  #usable = true
  #limited = false

  constructor(connection: Connection, timeoutMs: number) {
    this.connection = connection
    this.#timeoutMs = timeoutMs
  }

  /** False once the connection was destroyed. */
  get usable(): boolean {
    return this.#usable
  }

  async rows<Column extends string>(sql: string): Promise<MysqlRow<Column>[]> {
    return (await this.#send(sql, 0)) as MysqlRow<Column>[]
  }

  /** `extraMs` is for what the server may wait for a lock. Answers how many rows it found. */
  async run(sql: string, extraMs = 0): Promise<number> {
    return Number(((await this.#send(sql, extraMs)) as { affectedRows: unknown }).affectedRows)
  }

  /**
   * Runs a statement that may wait for the locks of others: for as many whole seconds as the
   * time-out has. The server gives up the wait by itself, since it would go on for a client that
   * is gone, and many such would use up its connections.
   */
  async runWaiting(sql: string, { kind }: MysqlServer): Promise<number> {
    const seconds = Math.ceil(this.#timeoutMs / 1000)
    const limit = `innodb_lock_wait_timeout = ${seconds}`
    if (kind === 'MariaDB') return this.run(`SET STATEMENT ${limit} FOR ${sql}`, seconds * 1000)
    await this.run(`SET @writefence_wait = @@innodb_lock_wait_timeout, ${limit}`)
    try {
      return await this.run(sql, seconds * 1000)
    } finally {
      // The connection is the user's again once the transaction is over.
      if (this.#usable) await this.run('SET innodb_lock_wait_timeout = @writefence_wait')
    }
  }

  /**
   * Has the server end the transaction of a client that says nothing in it for longer than that. A
   * process that is stopped in the middle would hold its job until it goes on. MySQL cannot.
   */
  async limitIdle(longestMs: number, { kind }: MysqlServer): Promise<void> {
    if (kind !== 'MariaDB') return
    const seconds = Math.ceil(longestMs / 1000) + 1
    await this.run(
      `SET @writefence_idle = @@idle_transaction_timeout, idle_transaction_timeout = ${seconds}`,
    )
    this.#limited = true
  }

  /** Leaves the user's connection as it was, or destroyed. */
  async restore(): Promise<void> {
    if (!this.#limited || !this.#usable) return
    try {
      await this.run('SET idle_transaction_timeout = @writefence_idle')
    } catch (error) {
      this.destroy(error)
    }
  }

  /** Sets a savepoint, and answers whether the connection is inside a transaction that can undo. */
  async savepoint(name: string): Promise<boolean> {
    const answer = await this.#send(`SAVEPOINT ${name}`, 0)
    const status = Number((answer as { serverStatus: unknown }).serverStatus)
    return (status & IN_TRANSACTION) !== 0 || (status & AUTOCOMMIT) === 0
  }

  async release(name: string): Promise<void> {
    await this.#send(`RELEASE SAVEPOINT ${name}`, 0)
  }

  async undoTo(name: string): Promise<void> {
    await this.#send(`ROLLBACK TO SAVEPOINT ${name}`, 0)
    await this.release(name)
  }

  /** @throws {@link TimedOut} where the work takes longer; the connection is destroyed then */
  async bounded<T>(timeoutMs: number, what: string, work: () => Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const error = new TimedOut(`${what} took longer than ${timeoutMs} ms`)
        this.destroy(error)
        reject(error)
      }, timeoutMs)
    })
    try {
      return await Promise.race([work(), late])
    } finally {
      clearTimeout(timer)
    }
  }

  /** Cuts the connection: what it has not committed is undone by the server. */
  destroy(reason: unknown): void {
    this.#usable = false
    this.connection.destroy()
    cut(this.connection, reason instanceof Error ? reason : new Error(String(reason)))
  }

  #send(sql: string, extraMs: number): Promise<unknown> {
    const send = async () => (await this.connection.query(plain(sql)))[0]
    return this.bounded(this.#timeoutMs + extraMs, 'the server', send)
  }
}

/** The statement, with every option that a pool may have set otherwise. */
function plain(sql: string): MysqlQuery {
  return {
    sql,
    namedPlaceholders: false,
    rowsAsArray: false,
    nestTables: false,
    typeCast: asBytes,
  }
}

const asBytes = (field: MysqlField) => field.buffer()

/** What mysql2 keeps under a connection of promises. */
interface Core {
  on?(event: 'error', listener: () => void): unknown
  readonly stream?: { destroy?(error: Error): unknown }
}

/**
 * Ends the socket itself: mysql2's own `destroy` says goodbye and waits for the server, which may
 * be what hangs, and leaves statements of an effect that are under way without any answer.
 */
function cut(connection: MysqlConnection, reason: Error): void {
  const core = (connection as { readonly connection?: Core }).connection ?? (connection as Core)
  // The socket's error is reported on the connection, where nobody may be listening any more.
  core.on?.('error', () => {})
  core.stream?.destroy?.(reason)
}
