/** A schema of its own on the server of the usual variables, dropped in the end. */

import pg from 'pg'
import { type FencingToken, type LeaseStore, WriteGuard } from 'writefence'
import { PostgresFenceStore, PostgresLeaseStore } from 'writefence/postgres'
import { postgresServer } from '../../test/support/servers.ts'
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

const MILLION = 1_000_000
const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'
const JOB = "'import-' || lpad(i::text, 8, '0')"
const LEASE = "lpad(to_hex(i), 32, '0')"
const SETTINGS = ['server_version', 'shared_buffers', 'synchronous_commit', 'autovacuum', 'fsync']

export class PostgresSite implements Site {
  readonly engine = 'postgres'
  readonly pool: pg.Pool
  readonly guard: WriteGuard<pg.PoolClient, 'async'>
  readonly leases: LeaseStore
  readonly schema: string
  about = ''
  readonly #fences: PostgresFenceStore<pg.PoolClient>

  private constructor({ connections, suffix }: SiteOptions) {
    this.schema = ownName(suffix)
    this.pool = this.connect(connections)
    this.#fences = new PostgresFenceStore(this.pool, { timeoutMs: PATIENT_MS })
    this.guard = new WriteGuard(this.#fences)
    this.leases = new PostgresLeaseStore(this.pool, { timeoutMs: PATIENT_MS })
  }

  static async open(options: SiteOptions = {}): Promise<PostgresSite> {
    const site = new PostgresSite(options)
    await site.#setUp()
    return site
  }

  /** A further pool, which is the caller's to end. */
  connect(connections = 20): pg.Pool {
    return new pg.Pool({
      ...postgresServer,
      options: `-c search_path=${this.schema}`,
      max: connections,
    })
  }

  async #setUp(): Promise<void> {
    await this.pool.query(`CREATE SCHEMA ${this.schema}`)
    await this.#fences.createSchema()
    await new PostgresLeaseStore(this.pool).createSchema()
    await this.pool.query(`CREATE TABLE account (id integer PRIMARY KEY, balance bigint NOT NULL)
      WITH (fillfactor = 50)`)
    await this.pool.query(
      `INSERT INTO account SELECT i, 0 FROM generate_series(0, ${ACCOUNTS - 1}) AS i`,
    )
    const { rows } = await this.pool.query<{ name: string; value: string }>(
      'SELECT name, current_setting(name) AS value FROM pg_settings WHERE name = ANY ($1)',
      [SETTINGS],
    )
    const value = (name: string) => rows.find((row) => row.name === name)?.value
    const [version, ...rest] = SETTINGS
    this.about = `PostgreSQL ${value(String(version))?.split(' ')[0]}, ${rest
      .map((name) => `${name} ${value(name)}`)
      .join(', ')}`
  }

  plain(account: number): Promise<unknown> {
    return credit(this.pool, account)
  }

  write(token: FencingToken, operationId: string, account: number): Promise<unknown> {
    const intent = { token, operationId, fingerprint: FINGERPRINT }
    return this.guard.write(intent, (tx) => credit(tx, account))
  }

  async fillFences(from: number, to: number): Promise<void> {
    for (const [start, end] of pieces(from, to, MILLION)) {
      await this.pool.query(`INSERT INTO writefence_fence
          (scope, job_id, generation, holder, lease_id, sealed)
        SELECT '', ${JOB}, ${GENERATION}, 'lease', ${LEASE}, false
        FROM generate_series(${start}, ${end - 1}) AS i`)
    }
  }

  async fillLeases(from: number, to: number): Promise<void> {
    for (const [start, end] of pieces(from, to, MILLION)) {
      await this.pool.query(`INSERT INTO writefence_lease
          (job_id, generation, status, owner, lease_id, ended_by, lapsed, ended_at)
        SELECT ${JOB}, ${GENERATION}, 'released', '${OWNER}', ${LEASE}, 'holder', false, ${NOW}
        FROM generate_series(${start}, ${end - 1}) AS i`)
    }
  }

  async fillRecords(from: number, to: number, jobs: number): Promise<void> {
    for (const [start, end] of pieces(from, to, MILLION)) {
      await this.pool.query(`INSERT INTO writefence_operation
          (fence_id, operation_id, status, generation, fingerprint, applied_at)
        SELECT f.id, 'credit-' || lpad(n::text, 10, '0'), 'applied', ${GENERATION},
          '${FINGERPRINT}', ${NOW} - ${HOUR_MS}
        FROM (SELECT n, n % ${jobs} AS i FROM generate_series(${start}, ${end - 1}) AS n) AS r
        JOIN writefence_fence AS f ON f.scope = '' AND f.job_id = ${JOB}`)
    }
  }

  async tidy(): Promise<void> {
    await this.pool.query('VACUUM (ANALYZE) writefence_fence')
    await this.pool.query('VACUUM (ANALYZE) writefence_operation')
    await this.pool.query('VACUUM (ANALYZE) writefence_lease')
    await this.pool.query('CHECKPOINT')
  }

  async bytes(): Promise<Bytes> {
    const { rows } = await this.pool.query<Record<keyof Bytes, string>>(
      `SELECT pg_total_relation_size('writefence_fence') AS fences,
         pg_total_relation_size('writefence_operation') AS records,
         pg_total_relation_size('writefence_lease') AS leases`,
    )
    const of = (kind: keyof Bytes) => Number(rows[0]?.[kind])
    return { fences: of('fences'), records: of('records'), leases: of('leases') }
  }

  async close(): Promise<void> {
    await this.pool.query(`DROP SCHEMA IF EXISTS ${this.schema} CASCADE`)
    await this.pool.end()
  }
}

/** The effect, without a result, so that none is recorded. */
export async function credit(on: pg.Pool | pg.PoolClient, account: number): Promise<void> {
  await on.query('UPDATE account SET balance = balance + 1 WHERE id = $1', [account])
}
