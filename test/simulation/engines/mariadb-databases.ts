/** Worlds on a real MariaDB (or MySQL), in databases of this process's own. */

import mysql, { type Pool, type PoolConnection } from 'mysql2/promise'
import { MysqlFenceStore, MysqlLeaseStore } from 'writefence/mysql'
import { mysqlServer } from '../../support/servers.ts'
import {
  type Databases,
  type DestinationDatabase,
  type EffectRow,
  effectOf,
  type FenceRow,
  type FoundEffect,
  type LeaseDatabase,
  type Observed,
  PATIENT_MS,
  Processes,
  type Store,
} from '../databases.ts'

// Without the revisions: they tell how often a row was locked, on which nothing depends.
const LEASE =
  'job_id, generation, status, owner, lease_id, ttl, lease_until, ended_by, lapsed, ended_at'
const FENCE = 'scope, job_id, generation, holder, lease_id, sealed'
const EFFECT = 'scope, job_id, generation, lease_id, operation_id, call_id'

export async function openMariadbDatabases(names: readonly string[]): Promise<Databases> {
  const opened = ['leases', ...names].map((name) => new Database(name))
  await Promise.all(opened.map((database) => database.open()))
  const [leases, ...destinations] = opened as [Database, ...Database[]]
  return {
    leases: new MariadbLeases(leases),
    destinations: new Map(
      destinations.map((database, i) => [names[i] ?? '', new MariadbDestination(database)]),
    ),
    end: async () => void (await Promise.all(opened.map((database) => database.end()))),
  }
}

/** A database with all tables, and the one connection to it: calls come in the order made. */
class Database {
  readonly name: string
  readonly pool: Pool

  constructor(name: string) {
    this.name = `writefence_simulation_${process.pid}_${name}`
    // Never closed for being idle: that would take timers.
    const settings = { connectionLimit: 1, maxIdle: 1, multipleStatements: true }
    this.pool = mysql.createPool({ ...mysqlServer, ...settings, database: this.name })
  }

  async open(): Promise<void> {
    const connection = await mysql.createConnection(mysqlServer)
    await connection.query(`DROP DATABASE IF EXISTS ${this.name}`)
    await connection.query(`CREATE DATABASE ${this.name} DEFAULT CHARACTER SET utf8mb4`)
    await connection.end()
    await new MysqlFenceStore(this.pool, { timeoutMs: PATIENT_MS }).createSchema()
    await new MysqlLeaseStore(this.pool, { timeoutMs: PATIENT_MS }).createSchema()
    await this.pool.query(
      `CREATE TABLE effect (
        seq BIGINT AUTO_INCREMENT PRIMARY KEY, scope VARCHAR(255) NOT NULL,
        job_id VARCHAR(255) NOT NULL, generation BIGINT NOT NULL, lease_id VARCHAR(255),
        operation_id VARCHAR(255), call_id VARCHAR(255) NOT NULL)`,
    )
  }

  async clear(...tables: readonly string[]): Promise<void> {
    await this.pool.query(tables.map((table) => `DELETE FROM ${table}`).join(';'))
  }

  async rows<Row>(
    sql: string,
    values: (string | number | (string | number | null)[])[] = [],
  ): Promise<Row[]> {
    return (await this.pool.query(sql, values))[0] as Row[]
  }

  /** Each row as the texts of its columns. */
  async texts(sql: string): Promise<(string | null)[][]> {
    const query = { sql, rowsAsArray: true, typeCast: (field: Field) => field.string('utf8') }
    return (await this.pool.query(query))[0] as unknown as (string | null)[][]
  }

  async end(): Promise<void> {
    await this.pool.query(`DROP DATABASE IF EXISTS ${this.name}`)
    await this.pool.end()
  }
}

interface Field {
  string(encoding: string): string | null
}

class MariadbLeases implements LeaseDatabase {
  readonly store: MysqlLeaseStore
  readonly #database: Database
  now: () => number = () => 0

  constructor(database: Database) {
    this.#database = database
    const now = () => this.now()
    this.store = new MysqlLeaseStore(database.pool, { now, timeoutMs: PATIENT_MS })
  }

  clear(): Promise<void> {
    return this.#database.clear('writefence_lease')
  }

  async save(): Promise<string> {
    const sql = `SELECT ${LEASE} FROM writefence_lease ORDER BY job_id`
    return JSON.stringify(await this.#database.texts(sql))
  }

  async load(saved: string): Promise<void> {
    await this.clear()
    for (const row of JSON.parse(saved) as (string | null)[][]) {
      const insert = `INSERT INTO writefence_lease (${LEASE}, revision) VALUES (?)`
      await this.#database.rows(insert, [[...row, 1]])
    }
  }
}

class MariadbDestination implements DestinationDatabase {
  readonly #database: Database
  readonly #processes: Processes
  now: () => number = () => 0

  constructor(database: Database) {
    this.#database = database
    const now = () => this.now()
    const options = { now, timeoutMs: PATIENT_MS, effectTimeoutMs: PATIENT_MS }
    this.#processes = new Processes(
      () => new MysqlFenceStore<PoolConnection>(database.pool, options) as Store,
    )
  }

  get store(): Store {
    return this.#processes.store
  }

  clear(): Promise<void> {
    this.#processes.rewind()
    return this.#database.clear('writefence_operation', 'writefence_fence', 'effect')
  }

  reopen(): void {
    this.#processes.next()
  }

  async write(tx: unknown, effect: EffectRow): Promise<void> {
    const { scope, jobId, generation, leaseId = null, operationId = null, call } = effect
    await (tx as PoolConnection).query(`INSERT INTO effect (${EFFECT}) VALUES (?)`, [
      [scope, jobId, generation, leaseId, operationId, call],
    ])
  }

  async observe(after: number): Promise<Observed> {
    const found = await this.#database.rows<FoundEffect>(
      `SELECT seq, scope, job_id AS jobId, generation, lease_id AS leaseId,
         operation_id AS operationId, call_id AS \`call\` FROM effect WHERE seq > ? ORDER BY seq`,
      [after],
    )
    const fences = await this.#database.rows<FenceRow>(
      `SELECT CONVERT(scope USING utf8mb4) AS scope, CONVERT(job_id USING utf8mb4) AS jobId,
         generation FROM writefence_fence ORDER BY writefence_fence.scope, job_id`,
    )
    return { effects: found.map(effectOf), fences: fences.map((row) => ({ ...row })) }
  }

  async digest(): Promise<string> {
    const tables = [
      await this.#database.texts(`SELECT ${FENCE} FROM writefence_fence ORDER BY scope, job_id`),
      await this.#database.texts(
        'SELECT * FROM writefence_operation ORDER BY scope, job_id, operation_id',
      ),
      await this.#database.texts(`SELECT ${EFFECT} FROM effect ORDER BY seq`),
    ]
    return JSON.stringify(tables)
  }
}
