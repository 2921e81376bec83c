/** What is expected of a server and of the tables on it, and how they come to be there. */

import { StoreUnavailableError } from '../../errors.ts'
import { retry } from '../retry.ts'
import {
  bytes,
  HOW_TO_CREATE,
  isNoTable,
  isUndone,
  type MysqlConnection,
  type MysqlSettings,
  unavailable,
} from './mysql-database.ts'
import { type MysqlSchema, statementsOf } from './mysql-schema.ts'
import { type MysqlServer, type MysqlSession, toNumber, toText } from './mysql-session.ts'
import type { MysqlTransactions } from './mysql-transactions.ts'

// The first with checked CHECKs and, on MariaDB, with all the time-outs that are set here.
const OLDEST = { MariaDB: [10, 5], MySQL: [8, 0] } as const

// Creating a table waits for transactions that use it, and for the disk.
const DDL_MS = 30_000

let warned = false

export class MysqlTables {
  readonly #schema: MysqlSchema
  readonly #prefix: string
  readonly #database: string | undefined
  #server: MysqlServer | undefined

  constructor(schema: MysqlSchema, { database, tablePrefix }: MysqlSettings) {
    this.#schema = schema
    this.#prefix = tablePrefix
    this.#database = database
  }

  /** The table as it stands in SQL. */
  name(table: string): string {
    const database = this.#database?.replaceAll('`', '``')
    return `${database === undefined ? '' : `\`${database}\`.`}${this.#prefix}${table}`
  }

  /**
   * Checks once that the server and the tables are good, by reads that take no snapshot: what comes
   * after them must not see the state from before its lock was won.
   * @throws StoreUnavailableError where they are not
   */
  async check(session: MysqlSession): Promise<MysqlServer> {
    if (this.#server !== undefined) return this.#server
    const server = await readServer(session)
    this.#assertVersion(await this.#versionOf(session))
    await this.#assertTransactional(session)
    this.#server = server
    return server
  }

  /**
   * Creates the tables where they are missing; safe when several processes do so at once.
   * @throws StoreUnavailableError where it cannot, or where there are tables of another version
   */
  async create<C extends MysqlConnection>(transactions: MysqlTransactions<C>): Promise<void> {
    try {
      await transactions.onConnection((session) => this.#create(session))
    } catch (error) {
      throw unavailable(error)
    }
  }

  async #create(session: MysqlSession): Promise<void> {
    try {
      await readServer(session)
      // Whoever may not create tables may still ask whether they are there.
      if ((await this.#versionOf(session)) === undefined) {
        for (const statement of statementsOf(this.#schema, this.name(''))) {
          await retry(() => session.run(statement, DDL_MS), isUndone)
        }
      }
      await this.check(session)
      await session.run('COMMIT')
    } catch (error) {
      session.destroy(error)
      throw error
    }
  }

  #assertVersion(found: number | undefined): void {
    const { component, version } = this.#schema
    if (found === version) return
    const problem =
      found === undefined
        ? `there are no ${component} tables: ${HOW_TO_CREATE}`
        : `the ${component} tables have version ${found}, this writefence needs ${version}: ${
            found > version ? 'upgrade writefence' : 'migrate the tables'
          }`
    throw new StoreUnavailableError(`MySQL: ${problem}`)
  }

  /** The version in the database; `undefined` where there is none yet. */
  async #versionOf(session: MysqlSession): Promise<number | undefined> {
    try {
      const [row] = await session.rows<'version'>(
        `SELECT version FROM ${this.name('schema')}
         WHERE component = '${this.#schema.component}' LOCK IN SHARE MODE`,
      )
      return row && toNumber(row.version)
    } catch (error) {
      if (isNoTable(error)) return undefined
      throw error
    }
  }

  /** A server that lacks an engine may have put another one in its place, without an error. */
  async #assertTransactional(session: MysqlSession): Promise<void> {
    const database = this.#database === undefined ? 'DATABASE()' : bytes(this.#database)
    const names = this.#schema.tables.map((table) => `'${this.#prefix}${table}'`).join(', ')
    const rows = await session.rows<'name' | 'engine'>(
      `SELECT TABLE_NAME AS name, ENGINE AS engine FROM information_schema.TABLES
       WHERE TABLE_SCHEMA = ${database} AND TABLE_NAME IN (${names}) AND ENGINE <> 'InnoDB'`,
    )
    for (const { name, engine } of rows) {
      const found = `the table ${toText(name)} is stored by ${toText(engine)}`
      throw new StoreUnavailableError(`MySQL: ${found}, which cannot undo a write: use InnoDB`)
    }
  }
}

async function readServer(session: MysqlSession): Promise<MysqlServer> {
  const [row] = await session.rows<'version' | 'packet' | 'durable'>(
    `SELECT VERSION() AS version, @@max_allowed_packet AS packet,
       @@innodb_flush_log_at_trx_commit IN (1, 3)
         AND NOT (@@log_bin AND @@sync_binlog <> 1) AS durable`,
  )
  const version = toText(row?.version) ?? ''
  const kind = version.includes('MariaDB') ? 'MariaDB' : 'MySQL'
  const [major = 0, minor = 0] = version.split('.').map((part) => Number.parseInt(part, 10))
  const [least, andLeast] = OLDEST[kind]
  if (major < least || (major === least && minor < andLeast)) {
    throw new StoreUnavailableError(
      `MySQL: ${kind} ${version} is too old: writefence needs ${least}.${andLeast} or newer`,
    )
  }
  if (toNumber(row?.durable) === 0) warn()
  return { kind, maxPacket: toNumber(row?.packet) }
}

function warn(): void {
  if (warned) return
  warned = true
  process.emitWarning(
    'the MySQL server can lose committed fences and leases at a power cut: set' +
      ' innodb_flush_log_at_trx_commit = 1 and, where it writes a binary log, sync_binlog = 1',
    { type: 'WritefenceWarning', code: 'WRITEFENCE_DURABILITY' },
  )
}
