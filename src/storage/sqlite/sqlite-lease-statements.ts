/** The SQL of the lease store, prepared once a handle, and its rows in the port's words. */

import type { LeaseRow } from '../../lease/lease-rules.ts'
import type { LeaseQuery } from '../../lease/lease-store.ts'
import { prepare, SQL_NOW, type SqliteDatabase } from './sqlite-database.ts'

interface StoredLease {
  job_id: string
  generation: number
  status: LeaseRow['status']
  owner: string | null
  lease_id: string | null
  ttl: number
  lease_until: number
  ended_by: 'holder' | 'operator'
  lapsed: number
  ended_at: number | null
}

export type SqliteLeaseStatements = ReturnType<typeof leaseStatements>

/** `now` is the store's clock in tests; `undefined` leaves the time to the database. */
export function leaseStatements(db: SqliteDatabase, now: (() => number) | undefined) {
  const sql = prepareAll(db)
  const given = () => now?.() ?? null

  return {
    /** The row and the time, as one statement reads them. */
    find(jobId: string): { row: LeaseRow | undefined; now: number } {
      type Found = (StoredLease | { job_id: null }) & { now: number }
      const found = sql.find.get(given(), jobId) as Found
      return { row: found.job_id === null ? undefined : toRow(found), now: found.now }
    },

    put(row: LeaseRow) {
      const { jobId, generation, status, owner, leaseId } = row
      const key = [jobId, generation, status, owner ?? null, leaseId ?? null]
      if (row.status === 'leased') {
        sql.put.run(...key, row.ttlMs, row.leaseUntil, null, 0, null)
      } else {
        sql.put.run(...key, null, null, row.endedBy, row.lapsed ? 1 : 0, row.endedAt ?? null)
      }
    },

    list({ status, owner, expired, after, limit }: LeaseQuery): { rows: LeaseRow[]; now: number } {
      const at = (sql.now.get(given()) as { now: number }).now
      const rows = sql.list.all({
        at,
        status: status ?? null,
        owner: owner ?? null,
        expired: expired === undefined ? null : expired ? 1 : 0,
        // Every id sorts after the empty text.
        after: after ?? '',
        limit,
      }) as StoredLease[]
      return { rows: rows.map(toRow), now: at }
    },

    prune: (olderThanMs: number, limit: number): number =>
      sql.prune.run(given(), olderThanMs, limit).changes,
  }
}

const AT = `coalesce(?, ${SQL_NOW})`
const COLUMNS =
  'job_id, generation, status, owner, lease_id, ttl, lease_until, ended_by, lapsed, ended_at'

function prepareAll(db: SqliteDatabase) {
  return {
    now: prepare(db, `SELECT ${AT} AS now`),
    find: prepare(
      db,
      `SELECT t.now, ${COLUMNS} FROM (SELECT ${AT} AS now) AS t
       LEFT JOIN writefence_lease ON job_id = ?`,
    ),
    put: prepare(
      db,
      `INSERT OR REPLACE INTO writefence_lease (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    // A tombstone is what has ended without a time of its end.
    list: prepare(
      db,
      `SELECT ${COLUMNS} FROM writefence_lease
       WHERE (status = 'leased' OR ended_at IS NOT NULL)
         AND job_id > @after
         AND (@status IS NULL OR status = @status)
         AND (@owner IS NULL OR owner = @owner)
         AND (@expired IS NULL OR (status = 'leased' AND (lease_until <= @at) = @expired))
       ORDER BY job_id LIMIT @limit`,
    ),
    prune: prepare(
      db,
      `UPDATE writefence_lease SET owner = NULL, lease_id = NULL, ended_at = NULL
       WHERE job_id IN (SELECT job_id FROM writefence_lease
         WHERE ended_at <= ${AT} - ? ORDER BY ended_at LIMIT ?)`,
    ),
  }
}

function toRow(stored: StoredLease): LeaseRow {
  const { job_id: jobId, generation, status, owner, lease_id: leaseId } = stored
  if (status !== 'leased') {
    return {
      status,
      jobId,
      generation,
      owner: owner ?? undefined,
      leaseId: leaseId ?? undefined,
      endedBy: stored.ended_by,
      lapsed: stored.lapsed === 1,
      endedAt: stored.ended_at ?? undefined,
    }
  }
  // The table refuses a lease without them.
  const held = { owner: owner as string, leaseId: leaseId as string }
  return { status, jobId, generation, ...held, ttlMs: stored.ttl, leaseUntil: stored.lease_until }
}
