/** A database of its own on the server of the usual variables, dropped in the end. */

import mysql, { type Pool, type PoolConnection } from 'mysql2/promise'
import { type FencingToken, type LeaseStore, WriteGuard } from 'writefence'
import { MysqlFenceStore, MysqlLeaseStore } from 'writefence/mysql'
import { mysqlServer } from '../../test/support/servers.ts'
import {
  ACCOUNTS,
  type Bytes,
  FINGERPRINT,
  GENERATION,
  HOUR_MS,
  OWNER,
  ownName,
  PATIENT_MS,
  pieces,
  type Site,
  type SiteOptions,
} from './site.ts'

const PIECE = 100_000
const NOW = 'CAST(unix_timestamp(now(3)) * 1000 AS SIGNED)'
const JOB = "CONCAT('import-', LPAD(i, 8, '0'))"
const LEASE = "LPAD(LOWER(HEX(i)), 32, '0')"
const numbers = (from: number, to: number) => `(SELECT seq AS i FROM seq_${from}_to_${to - 1}) AS n`

export class MysqlSite implements Site {
  readonly engine = 'mariadb'
  readonly pool: Pool
  readonly guard: WriteGuard<PoolConnection, 'async'>
  readonly leases: LeaseStore
  readonly database: string
  about = ''
  readonly #fences: MysqlFenceStore<PoolConnection>

  private constructor({ connections = 20, suffix }: SiteOptions) {
    this.database = ownName(suffix)
    const { database } = this
    this.pool = mysql.createPool({ ...mysqlServer, database, connectionLimit: connections })
    this.#fences = new MysqlFenceStore(this.pool, { timeoutMs: PATIENT_MS })
    this.guard = new WriteGuard(this.#fences)
    this.leases = new MysqlLeaseStore(this.pool, { timeoutMs: PATIENT_MS })
  }

  static async open(options: SiteOptions = {}): Promise<MysqlSite> {
    const site = new MysqlSite(options)
    await site.#setUp()
    return site
  }

  async #setUp(): Promise<void> {
    const connection = await mysql.createConnection(mysqlServer)
    await connection.query(`CREATE DATABASE ${this.database}`)
    await connection.end()
    await this.#fences.createSchema()
    await new MysqlLeaseStore(this.pool).createSchema()
    await this.pool.query('CREATE TABLE account (id INT PRIMARY KEY, balance BIGINT NOT NULL)')
    await this.pool.query(`INSERT INTO account SELECT i, 0 FROM ${numbers(0, ACCOUNTS)}`)
    const [rows] = await this.pool.query(`SELECT version() AS version,
      @@innodb_buffer_pool_size DIV 1048576 AS pool,
      @@innodb_flush_log_at_trx_commit AS flushed, @@log_bin AS binlog`)
    const [found] = rows as Record<string, string | number>[]
    const version = String(found?.version).split('-')[0]
    this.about =
      `MariaDB ${version}, innodb_buffer_pool_size ${found?.pool}MB, ` +
      `innodb_flush_log_at_trx_commit ${found?.flushed}, log_bin ${found?.binlog}`
  }

  plain(account: number): Promise<unknown> {
    return credit(this.pool, account)
  }

  write(token: FencingToken, operationId: string, account: number): Promise<unknown> {
    const intent = { token, operationId, fingerprint: FINGERPRINT }
    return this.guard.write(intent, (tx) => credit(tx, account))
  }

  async fillFences(from: number, to: number): Promise<void> {
    for (const [start, end] of pieces(from, to, PIECE)) {
      await this.pool.query(`INSERT INTO writefence_fence
          (scope, job_id, generation, holder, lease_id, sealed, revision)
        SELECT '', ${JOB}, ${GENERATION}, 'lease', ${LEASE}, 0, 1 FROM ${numbers(start, end)}`)
    }
  }

  async fillLeases(from: number, to: number): Promise<void> {
    for (const [start, end] of pieces(from, to, PIECE)) {
      await this.pool.query(`INSERT INTO writefence_lease (job_id, generation, status, owner,
          lease_id, ended_by, lapsed, ended_at, revision)
        SELECT ${JOB}, ${GENERATION}, 'released', '${OWNER}', ${LEASE}, 'holder', 0, ${NOW}, 1
        FROM ${numbers(start, end)}`)
    }
  }

  async fillRecords(from: number, to: number, jobs: number): Promise<void> {
    for (const [start, end] of pieces(from, to, PIECE)) {
      await this.pool.query(`INSERT INTO writefence_operation (scope, job_id, operation_id, status,
          generation, fingerprint, applied_at)
        SELECT '', CONCAT('import-', LPAD(i MOD ${jobs}, 8, '0')),
          CONCAT('credit-', LPAD(i, 10, '0')), 'applied', ${GENERATION}, '${FINGERPRINT}',
          ${NOW} - ${HOUR_MS} FROM ${numbers(start, end)}`)
    }
  }

  async tidy(): Promise<void> {
    await this.pool.query('ANALYZE TABLE writefence_fence, writefence_operation, writefence_lease')
  }

  async bytes(): Promise<Bytes> {
    const [rows] = await this.pool.query(
      'SELECT name, file_size AS size FROM information_schema.innodb_sys_tablespaces',
    )
    const sizes = rows as { name: string; size: number }[]
    const of = (table: string) =>
      Number(sizes.find(({ name }) => name === `${this.database}/writefence_${table}`)?.size)
    return { fences: of('fence'), records: of('operation'), leases: of('lease') }
  }

  async close(): Promise<void> {
    await this.pool.query(`DROP DATABASE IF EXISTS ${this.database}`)
    await this.pool.end()
  }
}

/** Without a result, so that none is recorded. */
async function credit(on: Pool | PoolConnection, account: number): Promise<void> {
  await on.query('UPDATE account SET balance = balance + 1 WHERE id = ?', [account])
}
