/** The tables of both stores, their versions, and what is expected of a server. */

import { StoreUnavailableError } from '../../errors.ts'
import { retry } from '../retry.ts'
import {
  bytes,
  isNoTable,
  isUndone,
  type MysqlConnection,
  type MysqlSettings,
  unavailable,
} from './mysql-database.ts'
import { type MysqlSession, toNumber, toText } from './mysql-session.ts'
import type { MysqlTransactions } from './mysql-transactions.ts'

/** One store's tables; `version` rises with every change of them. */
export interface MysqlSchema {
  readonly component: string
  readonly version: number
  readonly tables: readonly string[]
  /** The statements that create them, with `{}` for the prefix of their names. */
  readonly sql: readonly string[]
}

// An id has at most 255 code points, of up to four bytes each. VARBINARY, since it is compared byte
// by byte: the binary collations ignore spaces at the end on MariaDB, and have other names on MySQL.
// Three of them in a key take 3066 of the 3072 bytes that InnoDB allows.
const ID = 'VARBINARY(1020)'

// Not left to the server's defaults: other engines have no transactions, other formats shorter keys.
const STORED =
  'ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET = ascii COLLATE = ascii_bin'

const VERSIONS = `CREATE TABLE IF NOT EXISTS {}schema (
  component VARBINARY(32) NOT NULL,
  version   INT           NOT NULL,
  PRIMARY KEY (component)
) ${STORED}`

export const FENCE_SCHEMA: MysqlSchema = {
  component: 'fence',
  version: 1,
  tables: ['fence', 'operation'],
  sql: [
    `CREATE TABLE IF NOT EXISTS {}fence (
  scope      ${ID} NOT NULL,
  job_id     ${ID} NOT NULL,
  generation BIGINT          NOT NULL CHECK (generation >= 0),
  holder     ENUM('none', 'unbound', 'lease') NOT NULL,
  lease_id   ${ID} NULL,
  sealed     TINYINT         NOT NULL CHECK (sealed IN (0, 1)),
  revision   BIGINT          NOT NULL,
  PRIMARY KEY (scope, job_id),
  CHECK ((holder = 'lease') = (lease_id IS NOT NULL))
) ${STORED}`,
    `CREATE TABLE IF NOT EXISTS {}operation (
  scope        ${ID} NOT NULL,
  job_id       ${ID} NOT NULL,
  operation_id ${ID} NOT NULL,
  status       ENUM('in_flight', 'unknown', 'applied') NOT NULL,
  generation   BIGINT          NOT NULL,
  fingerprint  ${ID} NULL,
  attempt_id   ${ID} NULL,
  deadline     BIGINT          NULL,
  applied_at   BIGINT          NULL,
  result       LONGBLOB        NULL,
  PRIMARY KEY (scope, job_id, operation_id),
  KEY {}operation_unsettled (status, scope, job_id, generation),
  KEY {}operation_applied (applied_at),
  CHECK ((status = 'applied') = (attempt_id IS NULL)),
  CHECK ((status = 'in_flight') = (deadline IS NOT NULL)),
  CHECK ((status = 'applied') = (applied_at IS NOT NULL)),
  CHECK (status = 'applied' OR result IS NULL)
) ${STORED}`,
  ],
}

export const LEASE_SCHEMA: MysqlSchema = {
  component: 'lease',
  version: 1,
  tables: ['lease'],
  sql: [
    `CREATE TABLE IF NOT EXISTS {}lease (
  job_id      ${ID} NOT NULL,
  generation  BIGINT          NOT NULL CHECK (generation >= 0),
  status      ENUM('leased', 'released', 'completed') NOT NULL,
  owner       ${ID} NULL,
  lease_id    ${ID} NULL,
  ttl         BIGINT          NULL,
  lease_until BIGINT          NULL,
  ended_by    ENUM('holder', 'operator') NULL,
  lapsed      TINYINT         NOT NULL CHECK (lapsed IN (0, 1)),
  ended_at    BIGINT          NULL,
  revision    BIGINT          NOT NULL,
  PRIMARY KEY (job_id),
  KEY {}lease_status (status, job_id),
  KEY {}lease_ended (ended_at),
  CHECK (status <> 'leased' OR (owner IS NOT NULL AND ttl > 0)),
  CHECK ((owner IS NULL) = (lease_id IS NULL)),
  CHECK ((status = 'leased') = (ttl IS NOT NULL)),
  CHECK ((status = 'leased') = (lease_until IS NOT NULL)),
  CHECK ((status = 'leased') = (ended_by IS NULL)),
  CHECK (status <> 'leased' OR ended_at IS NULL)
) ${STORED}`,
  ],
}

// The first with checked CHECKs and, on MariaDB, with time-outs of single statements.
const OLDEST = { MariaDB: [10, 5], MySQL: [8, 0] } as const

// Creating a table waits for transactions that use it, and for the disk.
const DDL_MS = 30_000

/** What a store has to know of the server. */
export interface MysqlServer {
  readonly kind: 'MariaDB' | 'MySQL'
  /** The longest statement that it takes, in bytes. */
  readonly maxPacket: number
}

export class MysqlTables {
  readonly #schema: MysqlSchema
  readonly #prefix: string
  #server: MysqlServer | undefined

  constructor(schema: MysqlSchema, { tablePrefix }: MysqlSettings) {
    this.#schema = schema
    this.#prefix = tablePrefix
  }

  name(table: string): string {
    return this.#prefix + table
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
      await transactions.onConnection(async (session) => {
        await readServer(session)
        if ((await this.#versionOf(session)) === undefined) await this.#create(session)
      })
    } catch (error) {
      throw unavailable(error)
    }
    const check = async (session: MysqlSession) => {
      await this.check(session)
      return { value: undefined, commit: false }
    }
    await transactions.run('write', check)
  }

  async #create(session: MysqlSession): Promise<void> {
    const { component, version, sql } = this.#schema
    for (const statement of [VERSIONS, ...sql]) {
      const named = statement.replaceAll('{}', this.#prefix)
      await retry(() => session.run(named, DDL_MS), isUndone)
    }
    // Last, so that a version says that all tables are there. The first one to come sets it.
    await session.run(
      `INSERT IGNORE INTO ${this.name('schema')} (component, version)
       VALUES (${bytes(component)}, ${version})`,
    )
    await session.run('COMMIT')
  }

  #assertVersion(found: number | undefined): void {
    const { component, version } = this.#schema
    if (found === version) return
    const problem =
      found === undefined
        ? `there are no ${component} tables: run createSchema(), or the SQL of the package`
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
         WHERE component = ${bytes(this.#schema.component)} LOCK IN SHARE MODE`,
      )
      return row && toNumber(row.version)
    } catch (error) {
      if (isNoTable(error)) return undefined
      throw error
    }
  }

  /** A server that lacks an engine may have put another one in its place, without an error. */
  async #assertTransactional(session: MysqlSession): Promise<void> {
    const names = this.#schema.tables.map((table) => `'${this.name(table)}'`).join(', ')
    const rows = await session.rows<'name' | 'engine'>(
      `SELECT TABLE_NAME AS name, ENGINE AS engine FROM information_schema.TABLES
       WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN (${names}) AND ENGINE <> 'InnoDB'`,
    )
    for (const { name, engine } of rows) {
      const found = `the table ${toText(name)} is stored by ${toText(engine)}`
      throw new StoreUnavailableError(`MySQL: ${found}, which cannot undo a write: use InnoDB`)
    }
  }
}

async function readServer(session: MysqlSession): Promise<MysqlServer> {
  const [row] = await session.rows<'version' | 'packet'>(
    'SELECT VERSION() AS version, @@max_allowed_packet AS packet',
  )
  const version = toText(row?.version) ?? ''
  const kind = version.includes('MariaDB') ? 'MariaDB' : 'MySQL'
  const [major = 0, minor = 0] = version.split('.').map((part) => Number.parseInt(part, 10))
  const [least, least2] = OLDEST[kind]
  if (major < least || (major === least && minor < least2)) {
    throw new StoreUnavailableError(
      `MySQL: ${kind} ${version} is too old: writefence needs ${least}.${least2} or newer`,
    )
  }
  return { kind, maxPacket: toNumber(row?.packet) }
}
