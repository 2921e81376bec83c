/** A database of one's own on the MariaDB or MySQL server of the tests, and pools on it. */

import { setTimeout } from 'node:timers/promises'
import mysql, { type Pool, type PoolConnection, type PoolOptions } from 'mysql2/promise'
import { afterAll, afterEach } from 'vitest'
import {
  MysqlFenceStore,
  type MysqlFenceStoreOptions,
  MysqlLeaseStore,
  type MysqlStoreOptions,
} from 'writefence/mysql'
import { mysqlServer } from '../support/servers.ts'
import { problemOf } from './engine.ts'

export class MysqlBench {
  readonly database: string
  /** A pool of the test's own, beside those of the stores. */
  readonly pool: Pool
  readonly problem: unknown
  readonly #pools: Pool[] = []

  private constructor(database: string, pool: Pool, problem: unknown) {
    this.database = database
    this.pool = pool
    this.problem = problem
    afterEach(() => this.#endPools())
    afterAll(async () => {
      await this.#endPools()
      if (problem === undefined) await pool.query(`DROP DATABASE ${database}`)
      await pool.end()
    })
  }

  /** Makes the database, with the tables of both stores and one named `log`, for one test file. */
  static async open(name: string): Promise<MysqlBench> {
    const database = `writefence_test_${name}_${process.pid}`
    const pool = mysql.createPool({ ...mysqlServer, database, connectionLimit: 4 })
    const problem = await problemOf(async () => {
      const connection = await mysql.createConnection(mysqlServer)
      await connection.query(`DROP DATABASE IF EXISTS ${database}`)
      await connection.query(`CREATE DATABASE ${database}`)
      await connection.end()
      await pool.query(
        'CREATE TABLE log (id BIGINT AUTO_INCREMENT PRIMARY KEY, text LONGBLOB NOT NULL)',
      )
      await new MysqlFenceStore(pool).createSchema()
      await new MysqlLeaseStore(pool).createSchema()
    })
    return new MysqlBench(database, pool, problem)
  }

  /** A further pool, which is ended after the test; each session of it begins with `setUp`. */
  connect(options: PoolOptions = {}, ...setUp: string[]): Pool {
    const { database } = this
    const pool = mysql.createPool({ ...mysqlServer, database, connectionLimit: 4, ...options })
    pool.pool.on('connection', (connection) => {
      for (const statement of setUp) connection.query(statement)
    })
    this.#pools.push(pool)
    return pool
  }

  fences({ pool = this.connect(), ...options }: MysqlFenceStoreOptions & { pool?: Pool } = {}) {
    return new MysqlFenceStore(pool, options)
  }

  leases({ pool = this.connect(), ...options }: MysqlStoreOptions & { pool?: Pool } = {}) {
    return new MysqlLeaseStore(pool, options)
  }

  async empty(): Promise<void> {
    for (const table of ['log', 'writefence_fence', 'writefence_operation', 'writefence_lease']) {
      await this.pool.query(`DELETE FROM ${table}`)
    }
  }

  /** Appends to the log within the transaction. */
  async append(tx: Pick<PoolConnection, 'query'>, text: string): Promise<void> {
    await tx.query(`INSERT INTO ${this.database}.log (text) VALUES (?)`, [Buffer.from(text)])
  }

  async log(): Promise<string[]> {
    const [rows] = await this.pool.query('SELECT text FROM log ORDER BY id')
    return (rows as { text: Buffer }[]).map((row) => row.text.toString())
  }

  /** Runs the body in a transaction that is committed, or rolled back where it throws. */
  async transaction<T>(
    body: (tx: PoolConnection) => Promise<T>,
    { begin = ['START TRANSACTION'], pool = this.pool } = {},
  ): Promise<T> {
    const connection = await pool.getConnection()
    try {
      for (const statement of begin) await connection.query(statement)
      const value = await body(connection)
      await connection.query('COMMIT')
      return value
    } catch (error) {
      await connection.query('ROLLBACK')
      throw error
    } finally {
      connection.release()
    }
  }

  /** Resolves once a transaction on the database waits for a lock. */
  async untilWaiting(count = 1): Promise<void> {
    const own = 'SELECT ID FROM information_schema.PROCESSLIST WHERE DB = ? AND ID IN (?)'
    for (;;) {
      // Not INNODB_TRX: it shows the same again as long as somebody, from whatever process, has
      // looked at it within a tenth of a second.
      const [rows] = await this.pool.query('SHOW ENGINE INNODB STATUS')
      const [{ Status: status } = { Status: '' }] = rows as { Status: string }[]
      const ids = [...status.matchAll(/^LOCK WAIT .*\n\w+ thread id (\d+)/gm)].map(([, id]) => id)
      const [waiting] = await this.pool.query(own, [this.database, [0, ...ids]])
      if ((waiting as unknown[]).length >= count) return
      await setTimeout(20)
    }
  }

  async #endPools(): Promise<void> {
    await Promise.all(this.#pools.splice(0).map((pool) => pool.end()))
  }
}
