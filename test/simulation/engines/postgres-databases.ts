/** Worlds on a real PostgreSQL, in schemas of this process's own. */

import pg from 'pg'
import { PostgresFenceStore, PostgresLeaseStore } from 'writefence/postgres'
import { postgresServer } from '../../support/servers.ts'
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

/** Rows that were deleted stay in the way until the table is truncated, which takes longer. */
const CLEARS_PER_TRUNCATE = 500

export async function openPostgresDatabases(names: readonly string[]): Promise<Databases> {
  const opened = ['leases', ...names].map((name) => new Schema(name))
  await Promise.all(opened.map((schema) => schema.open()))
  const [leases, ...destinations] = opened as [Schema, ...Schema[]]
  return {
    leases: new PostgresLeases(leases),
    destinations: new Map(
      destinations.map((schema, i) => [names[i] ?? '', new PostgresDestination(schema)]),
    ),
    end: async () => void (await Promise.all(opened.map((schema) => schema.end()))),
  }
}

/** A schema with all tables, and the one connection to it: calls come in the order made. */
class Schema {
  readonly name: string
  readonly pool: pg.Pool
  #clears = 0

  constructor(name: string) {
    this.name = `writefence_simulation_${process.pid}_${name}`
    // Neither idle for too long, nor waited for: that would take timers.
    const settings = { max: 1, idleTimeoutMillis: 0, options: `-c search_path=${this.name}` }
    this.pool = new pg.Pool({ ...postgresServer, ...settings })
  }

  async open(): Promise<void> {
    await this.pool.query(`DROP SCHEMA IF EXISTS ${this.name} CASCADE; CREATE SCHEMA ${this.name}`)
    await new PostgresFenceStore(this.pool, { timeoutMs: PATIENT_MS }).createSchema()
    await new PostgresLeaseStore(this.pool, { timeoutMs: PATIENT_MS }).createSchema()
    // Worlds do not crash the server: a commit need not wait for the disk.
    await this.pool.query(`
      CREATE TABLE effect (
        seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, scope text NOT NULL,
        job_id text NOT NULL, generation bigint NOT NULL, lease_id text, operation_id text,
        call text NOT NULL);
      ALTER TABLE effect SET UNLOGGED;
      ALTER TABLE writefence_operation SET UNLOGGED;
      ALTER TABLE writefence_fence SET UNLOGGED;
      ALTER TABLE writefence_lease SET UNLOGGED`)
  }

  /** Empties these tables. */
  async clear(...tables: readonly string[]): Promise<void> {
    this.#clears += 1
    if (this.#clears % CLEARS_PER_TRUNCATE === 0) {
      await this.pool.query(`TRUNCATE ${tables.join(', ')} RESTART IDENTITY`)
    } else {
      await this.pool.query(tables.map((table) => `DELETE FROM ${table}`).join(';'))
    }
  }

  /** The one value of the one row. */
  async text(sql: string): Promise<string> {
    const { rows } = await this.pool.query<{ text: string }>(sql)
    return rows[0]?.text ?? ''
  }

  async end(): Promise<void> {
    await this.pool.query(`DROP SCHEMA IF EXISTS ${this.name} CASCADE`)
    await this.pool.end()
  }
}

class PostgresLeases implements LeaseDatabase {
  readonly store: PostgresLeaseStore
  readonly #schema: Schema
  now: () => number = () => 0

  constructor(schema: Schema) {
    this.#schema = schema
    const now = () => this.now()
    this.store = new PostgresLeaseStore(schema.pool, { now, timeoutMs: PATIENT_MS })
  }

  clear(): Promise<void> {
    return this.#schema.clear('writefence_lease')
  }

  save(): Promise<string> {
    return this.#schema.text(
      `SELECT coalesce(jsonb_agg(lease ORDER BY job_id), '[]')::text AS text
       FROM writefence_lease lease`,
    )
  }

  async load(saved: string): Promise<void> {
    await this.clear()
    await this.#schema.pool.query(
      `INSERT INTO writefence_lease
       SELECT * FROM jsonb_populate_recordset(NULL::writefence_lease, $1)`,
      [saved],
    )
  }
}

class PostgresDestination implements DestinationDatabase {
  readonly #schema: Schema
  readonly #processes: Processes
  now: () => number = () => 0

  constructor(schema: Schema) {
    this.#schema = schema
    const now = () => this.now()
    const options = { now, timeoutMs: PATIENT_MS, effectTimeoutMs: PATIENT_MS }
    this.#processes = new Processes(
      () => new PostgresFenceStore<pg.PoolClient>(schema.pool, options) as Store,
    )
  }

  get store(): Store {
    return this.#processes.store
  }

  clear(): Promise<void> {
    this.#processes.rewind()
    return this.#schema.clear('writefence_operation', 'writefence_fence', 'effect')
  }

  reopen(): void {
    this.#processes.next()
  }

  async write(tx: unknown, effect: EffectRow): Promise<void> {
    const { scope, jobId, generation, leaseId, operationId, call } = effect
    await (tx as pg.PoolClient).query(
      `INSERT INTO effect (scope, job_id, generation, lease_id, operation_id, call)
       VALUES ($1, $2, $3, $4, $5, $6)`,
      [scope, jobId, generation, leaseId, operationId, call],
    )
  }

  /** In one statement, which is one message there and one back. */
  async observe(after: number): Promise<Observed> {
    const found = await this.#schema.text(
      `SELECT json_build_object(
         'effects', (SELECT coalesce(json_agg(json_build_object('seq', seq, 'scope', scope,
             'jobId', job_id, 'generation', generation, 'leaseId', lease_id,
             'operationId', operation_id, 'call', call) ORDER BY seq), '[]')
           FROM effect WHERE seq > ${after}),
         'fences', (SELECT coalesce(json_agg(json_build_object('scope', scope,
             'jobId', job_id, 'generation', generation) ORDER BY scope, job_id), '[]')
           FROM writefence_fence))::text AS text`,
    )
    const { effects, fences } = JSON.parse(found) as { effects: FoundEffect[]; fences: FenceRow[] }
    return { effects: effects.map(effectOf), fences }
  }

  /** Without the ids of rows: they tell what was undone, on which nothing depends. */
  digest(): Promise<string> {
    return this.#schema.text(
      `SELECT json_build_array(
         (SELECT json_agg(to_jsonb(fence) - 'id' ORDER BY scope, job_id)
          FROM writefence_fence fence),
         (SELECT json_agg(to_jsonb(operation) - 'fence_id'
             || jsonb_build_object('scope', scope, 'job_id', job_id)
             ORDER BY scope, job_id, operation_id)
          FROM writefence_operation operation JOIN writefence_fence ON id = fence_id),
         (SELECT json_agg(to_jsonb(effect) - 'seq' ORDER BY seq) FROM effect))::text AS text`,
    )
  }
}
