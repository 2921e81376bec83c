/** The SQL of the lease store, and its rows in the port's words. */

import type { LeaseRow } from '../../lease/lease-rules.ts'
import type { LeaseQuery } from '../../lease/lease-store.ts'
import { type Query, SQL_NOW } from './postgres-database.ts'
import type { PostgresTables } from './postgres-schema.ts'

/** Integers come as strings, numbers or bigints, as the driver has been told to read them. */
type Int = number | string | bigint

interface StoredLease {
  now: Int
  job_id: string | null
  generation: Int
  status: LeaseRow['status']
  owner: string | null
  lease_id: string | null
  ttl: Int
  lease_until: Int
  ended_by: 'holder' | 'operator'
  lapsed: boolean
  ended_at: Int | null
}

export type PostgresLeaseSql = ReturnType<typeof leaseSql>

/** What a statement read, and the store's time when it did. */
export interface Found {
  readonly row: LeaseRow | undefined
  readonly now: number
}

/** `now` is the store's clock in tests; `undefined` leaves the time to the database. */
export function leaseStatements(
  sql: PostgresLeaseSql,
  query: Query,
  now: (() => number) | undefined,
) {
  const given = () => now?.() ?? null

  return {
    /** Waits for the job's row, which it makes where there is none. */
    async lock(jobId: string): Promise<void> {
      for (;;) {
        if ((await query(sql.lock, [jobId])).length > 0) return
        if ((await query(sql.make, [jobId])).length > 0) return
        // Another transaction has made it in between.
      }
    },

    async find(jobId: string): Promise<Found> {
      const [stored] = await query<StoredLease>(sql.find, [jobId, given()])
      return { row: stored && toRow(stored), now: Number(stored?.now) }
    },

    put(row: LeaseRow) {
      const { jobId, generation, status, owner, leaseId } = row
      const key = [jobId, generation, status, owner ?? null, leaseId ?? null]
      return query(
        sql.put,
        row.status === 'leased'
          ? [...key, row.ttlMs, row.leaseUntil, null, false, null]
          : [...key, null, null, row.endedBy, row.lapsed ?? false, row.endedAt ?? null],
      )
    },

    async list({ status, owner, expired, after, limit }: LeaseQuery): Promise<Found[]> {
      const values = [status ?? null, owner ?? null, expired ?? null, after ?? null, limit, given()]
      const stored = await query<StoredLease>(sql.list, values)
      return stored.map((each) => ({ row: toRow(each), now: Number(each.now) }))
    },

    async prune(olderThanMs: number, limit: number): Promise<number> {
      const [row] = await query<{ pruned: Int }>(sql.prune, [olderThanMs, limit, given()])
      return Number(row?.pruned ?? 0)
    },
  }
}

const COLUMNS =
  'job_id, generation, status, owner, lease_id, ttl, lease_until, ended_by, lapsed, ended_at'

export function leaseSql({ lease }: PostgresTables) {
  const at = (parameter: string) =>
    `at AS MATERIALIZED (SELECT coalesce(${parameter}::bigint, ${SQL_NOW}) AS now)`
  return {
    lock: `SELECT 1 AS locked FROM ${lease} WHERE job_id = $1::text FOR UPDATE`,
    // Generation 0 is no lease yet, and is never committed.
    make: `INSERT INTO ${lease} (job_id, generation, status, ended_by, lapsed)
      VALUES ($1::text, 0, 'released', 'operator', false)
      ON CONFLICT (job_id) DO NOTHING RETURNING 1 AS made`,
    find: `WITH ${at('$2')}
      SELECT at.now, ${COLUMNS} FROM at LEFT JOIN ${lease} ON job_id = $1::text AND generation > 0`,
    put: `UPDATE ${lease} SET generation = $2::bigint, status = $3::text, owner = $4::text,
      lease_id = $5::text, ttl = $6::bigint, lease_until = $7::bigint, ended_by = $8::text,
      lapsed = $9::boolean, ended_at = $10::bigint WHERE job_id = $1::text`,
    // A tombstone is what has ended without a time of its end.
    list: `WITH ${at('$6')}
      SELECT at.now, ${COLUMNS} FROM at, ${lease}
      WHERE (status = 'leased' OR ended_at IS NOT NULL)
        AND ($1::text IS NULL OR status = $1::text)
        AND ($2::text IS NULL OR owner = $2::text)
        AND ($3::boolean IS NULL OR (status = 'leased' AND (lease_until <= at.now) = $3::boolean))
        AND ($4::text IS NULL OR job_id > $4::text)
      ORDER BY job_id LIMIT $5::bigint`,
    // Of a table that was partitioned each part has rows of its own at the same ctid.
    prune: `WITH ${at('$3')}, due AS MATERIALIZED (
        SELECT tableoid AS part, ctid AS place FROM ${lease}
        WHERE ended_at IS NOT NULL AND ended_at <= (SELECT now - $1::bigint FROM at)
        ORDER BY ended_at LIMIT $2::bigint FOR UPDATE SKIP LOCKED),
      gone AS (UPDATE ${lease} AS l SET owner = NULL, lease_id = NULL, ended_at = NULL
        WHERE l.ctid = ANY (ARRAY(SELECT place FROM due))
          AND (l.tableoid, l.ctid) IN (SELECT part, place FROM due) RETURNING 1)
      SELECT count(*) AS pruned FROM gone`,
  }
}

function toRow(stored: StoredLease): LeaseRow | undefined {
  const { job_id: jobId, status, owner, lease_id: leaseId } = stored
  if (jobId === null) return undefined
  const generation = Number(stored.generation)
  if (status !== 'leased') {
    return {
      status,
      jobId,
      generation,
      owner: owner ?? undefined,
      leaseId: leaseId ?? undefined,
      endedBy: stored.ended_by,
      lapsed: stored.lapsed,
      endedAt: stored.ended_at === null ? undefined : Number(stored.ended_at),
    }
  }
  // The table refuses a lease without them.
  const held = { owner: owner as string, leaseId: leaseId as string }
  const ttlMs = Number(stored.ttl)
  return { status, jobId, generation, ...held, ttlMs, leaseUntil: Number(stored.lease_until) }
}
