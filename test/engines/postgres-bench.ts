/** A schema of one's own on the PostgreSQL server of the tests, and pools on it. */

import pg from 'pg'
import { afterAll, afterEach, onTestFinished } from 'vitest'
import {
  PostgresFenceStore,
  type PostgresFenceStoreOptions,
  PostgresLeaseStore,
  type PostgresStoreOptions,
} from 'writefence/postgres'
import { postgresServer } from '../support/servers.ts'
import { problemOf } from './engine.ts'
import { TcpProxy } from './tcp-proxy.ts'

// On a machine that is busy with other tests no call may fail for being slow.
const PATIENT_MS = 60_000

export class PostgresBench {
  readonly address = postgresServer
  readonly schema: string
  /** A pool of the test's own, beside those of the stores. */
  readonly pool: pg.Pool
  readonly problem: unknown
  readonly #pools: pg.Pool[] = []

  private constructor(schema: string, pool: pg.Pool, problem: unknown) {
    this.schema = schema
    this.pool = pool
    this.problem = problem
    afterEach(() => this.#endPools())
    afterAll(async () => {
      await this.#endPools()
      if (problem === undefined) await pool.query(`DROP SCHEMA ${schema} CASCADE`)
      await pool.end()
    })
  }

  /** Makes the schema, with the tables of both stores and one named `log`, for one test file. */
  static async open(name: string): Promise<PostgresBench> {
    const schema = `writefence_test_${name}_${process.pid}`
    const pool = new pg.Pool({ ...postgresServer, options: `-c search_path=${schema}`, max: 4 })
    const problem = await problemOf(() => pool.query('SELECT 1'))
    if (problem === undefined) {
      await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE; CREATE SCHEMA ${schema};
        CREATE TABLE log (id bigint GENERATED ALWAYS AS IDENTITY, text text NOT NULL)`)
      await new PostgresFenceStore(pool, { timeoutMs: PATIENT_MS }).createSchema()
      await new PostgresLeaseStore(pool, { timeoutMs: PATIENT_MS }).createSchema()
    }
    return new PostgresBench(schema, pool, problem)
  }

  /** A further pool, which is ended after the test. */
  connect(config: pg.PoolConfig = {}): pg.Pool {
    const pool = new pg.Pool({ ...postgresServer, max: 4, ...config })
    pool.on('error', () => {})
    this.#pools.push(pool)
    return pool
  }

  fences(options: PostgresFenceStoreOptions & { pool?: pg.Pool } = {}) {
    const { pool = this.connect(), ...rest } = options
    return new PostgresFenceStore(pool, { schema: this.schema, timeoutMs: PATIENT_MS, ...rest })
  }

  leases(options: PostgresStoreOptions & { pool?: pg.Pool } = {}): PostgresLeaseStore {
    const { pool = this.connect(), ...rest } = options
    return new PostgresLeaseStore(pool, { schema: this.schema, timeoutMs: PATIENT_MS, ...rest })
  }

  async empty(): Promise<void> {
    // Far less work for the server than TRUNCATE, which makes new files of each table.
    await this.pool.query(`DELETE FROM log; DELETE FROM writefence_operation;
      DELETE FROM writefence_fence; DELETE FROM writefence_lease`)
  }

  /** Appends to the log within the transaction. */
  async append(tx: pg.ClientBase, text: string): Promise<void> {
    await tx.query(`INSERT INTO ${this.schema}.log (text) VALUES ($1)`, [text])
  }

  async log(): Promise<string[]> {
    const { rows } = await this.pool.query<{ text: string }>('SELECT text FROM log ORDER BY id')
    return rows.map((row) => row.text)
  }

  /** Runs the body in a transaction that is committed, or rolled back where it throws. */
  async transaction<T>(
    body: (tx: pg.PoolClient) => Promise<T>,
    { begin = 'BEGIN', pool = this.pool } = {},
  ): Promise<T> {
    const client = await pool.connect()
    try {
      await client.query(begin)
      const value = await body(client)
      await client.query('COMMIT')
      return value
    } catch (error) {
      await client.query('ROLLBACK')
      throw error
    } finally {
      client.release()
    }
  }

  /** A pool whose connections go by way of a proxy, under a name of their own. */
  async proxied(config: pg.PoolConfig = {}): Promise<{ proxy: TcpProxy; pool: pg.Pool }> {
    const proxy = await TcpProxy.to(postgresServer.host, postgresServer.port)
    const { port } = proxy
    const pool = this.connect({ host: '127.0.0.1', port, application_name: this.schema, ...config })
    onTestFinished(async () => {
      proxy.resume()
      await proxy.close()
    })
    return { proxy, pool }
  }

  /** Resolves once the server has no connection left that came by way of a proxy. */
  async untilGone(): Promise<void> {
    const remaining = 'SELECT FROM pg_stat_activity WHERE application_name = $1'
    while ((await this.pool.query(remaining, [this.schema])).rows.length > 0);
  }

  /** Resolves once that many statements on the schema wait for a lock. */
  async untilWaiting(count = 1): Promise<void> {
    for (;;) {
      const { rows } = await this.pool.query(
        `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND position($1 IN query) > 0`,
        [this.schema],
      )
      if (rows.length >= count) return
    }
  }

  async #endPools(): Promise<void> {
    const pools = this.#pools.splice(0).filter((pool) => !pool.ending)
    await Promise.all(pools.map((pool) => pool.end()))
  }
}
