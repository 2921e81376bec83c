/** The SQL of the fence store, prepared once a handle, and its rows turned into the port's words. */

import type {
  CensusRow,
  Fence,
  Holder,
  JobKey,
  JobView,
  Operation,
  OperationChange,
  Pending,
  UnsettledOperation,
} from '../../guard/fence-store.ts'
import { prepare, SQL_NOW, type SqliteDatabase } from './sqlite-database.ts'

/** A job as one statement reads it: its fence, the unit's own operation, whether there are others. */
interface ViewRow {
  fence: number | null
  holder: Holder['kind']
  lease_id: string
  sealed: number
  generation: number | null
  fingerprint: string | null
  attempt_id: string | null
  deadline: number | null
  result: string | null
  others: number
}

const AT = `coalesce(?, ${SQL_NOW})`
const UNSETTLED = 'attempt_id IS NOT NULL'
const STATUS_BY =
  "CASE WHEN deadline IS NULL THEN 'unknown' WHEN deadline <= ? THEN 'overdue' ELSE 'in_flight' END"

export type SqliteFenceStatements = ReturnType<typeof fenceStatements>

/** `now` is the store's clock in tests; `undefined` leaves the time to the database. */
export function fenceStatements(db: SqliteDatabase, now: (() => number) | undefined) {
  const sql = prepareAll(db)
  const given = () => now?.() ?? null
  const time = () => now?.() ?? (sql.now.get() as { now: number }).now

  return {
    savepoint: (name: 'writefence_unit' | 'writefence_effect') => sql[name],

    /** Takes the write lock of the database without changing anything. */
    lock: ({ scope, jobId }: JobKey) => sql.lock.run(scope, jobId),

    view({ scope, jobId }: JobKey, operationId: string | undefined, census: boolean): JobView {
      const row = sql.view.get(scope, jobId, operationId ?? null) as ViewRow
      return {
        fence: toFence(row),
        operation: toOperation(row, time),
        pending: row.others === 1 ? pendingOf(scope, jobId, operationId) : {},
        census: census ? (sql.census.all(time(), scope, jobId) as CensusRow[]) : undefined,
      }
    },

    putFence({ scope, jobId }: JobKey, { generation, holder, sealed }: Fence) {
      const leaseId = holder.kind === 'lease' ? holder.leaseId : null
      sql.putFence.run(scope, jobId, generation, holder.kind, leaseId, sealed ? 1 : 0)
    },

    putOperation({ scope, jobId }: JobKey, operationId: string, change: OperationChange) {
      const key = [scope, jobId, operationId, change.generation, change.fingerprint ?? null]
      switch (change.status) {
        case 'in_flight':
          return sql.putInFlight.run(...key, change.attemptId, given(), change.deadlineMs)
        case 'unknown':
          return sql.putUnknown.run(...key, change.attemptId)
        case 'applied':
          return sql.putApplied.run(...key, given(), change.result ?? null)
      }
    },

    setResult: ({ scope, jobId }: JobKey, operationId: string, result: string) =>
      sql.setResult.run(result, scope, jobId, operationId),

    deleteOperation: ({ scope, jobId }: JobKey, operationId: string) =>
      sql.deleteOperation.run(scope, jobId, operationId),

    list: (scope: string | undefined, jobId: string | undefined, limit: number) =>
      sql.list.all(
        time(),
        scope ?? null,
        scope ?? null,
        jobId ?? null,
        jobId ?? null,
        limit,
      ) as UnsettledOperation[],

    prune: (olderThanMs: number, sealedOnly: boolean, limit: number): number =>
      sql.prune.run(given(), olderThanMs, sealedOnly ? 1 : 0, limit).changes,
  }

  function pendingOf(scope: string, jobId: string, operationId: string | undefined) {
    const at = time()
    const key = [scope, jobId, operationId ?? null, at]
    const inFlight = sql.oldestInFlight.get(...key) as { generation: number; deadline: number }
    const overdue = sql.oldestOverdue.get(...key) as { generation: number } | undefined
    const pending: { inFlight?: Pending; overdue?: Pending } = {}
    if (inFlight !== undefined) {
      pending.inFlight = { generation: inFlight.generation, remainingMs: inFlight.deadline - at }
    }
    if (overdue !== undefined) pending.overdue = { generation: overdue.generation, remainingMs: 0 }
    return pending
  }
}

// The planner would walk all records of a job rather than the few that are unsettled. A partial
// index serves only where its condition stands in the query, word for word.
const INDEXED = 'INDEXED BY writefence_operation_unsettled'

function prepareAll(db: SqliteDatabase) {
  const one = (text: string) => prepare(db, text)
  const savepoint = (name: string) => ({
    begin: one(`SAVEPOINT ${name}`),
    release: one(`RELEASE ${name}`),
    undo: one(`ROLLBACK TO ${name}`),
  })
  const job = 'scope = ? AND job_id = ?'
  const other = `${job} AND ${UNSETTLED} AND operation_id IS NOT ?`
  const put = (columns: string, values: string) =>
    one(`INSERT OR REPLACE INTO writefence_operation
      (scope, job_id, operation_id, generation, fingerprint, ${columns})
      VALUES (?, ?, ?, ?, ?, ${values})`)
  return {
    writefence_unit: savepoint('writefence_unit'),
    writefence_effect: savepoint('writefence_effect'),
    now: one(`SELECT ${SQL_NOW} AS now`),
    lock: one(`UPDATE writefence_fence SET generation = generation WHERE ${job}`),
    view: one(`SELECT f.generation AS fence, holder, lease_id, sealed, o.generation,
        fingerprint, attempt_id, deadline, result, EXISTS (SELECT 1 FROM writefence_operation AS u ${INDEXED}
          WHERE u.scope = k.scope AND u.job_id = k.job_id AND u.attempt_id IS NOT NULL
            AND u.deadline IS NOT NULL AND u.operation_id IS NOT k.operation_id) AS others
      FROM (SELECT ? AS scope, ? AS job_id, ? AS operation_id) AS k
      LEFT JOIN writefence_fence AS f ON f.scope = k.scope AND f.job_id = k.job_id
      LEFT JOIN writefence_operation AS o
        ON o.scope = k.scope AND o.job_id = k.job_id AND o.operation_id = k.operation_id`),
    oldestInFlight: one(`SELECT generation, deadline FROM writefence_operation ${INDEXED}
      WHERE ${other} AND deadline > ? ORDER BY generation LIMIT 1`),
    oldestOverdue: one(`SELECT generation FROM writefence_operation ${INDEXED}
      WHERE ${other} AND deadline <= ? ORDER BY generation LIMIT 1`),
    census: one(`SELECT ${STATUS_BY} AS status, generation, count(*) AS count
      FROM writefence_operation ${INDEXED} WHERE ${job} AND ${UNSETTLED} GROUP BY 1, 2`),
    putFence:
      one(`INSERT INTO writefence_fence (scope, job_id, generation, holder, lease_id, sealed)
      VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (scope, job_id) DO UPDATE SET
      generation = excluded.generation, holder = excluded.holder,
      lease_id = excluded.lease_id, sealed = excluded.sealed`),
    putInFlight: put('attempt_id, deadline', `?, ${AT} + ?`),
    putUnknown: put('attempt_id', '?'),
    putApplied: put('applied_at, result', `${AT}, ?`),
    setResult: one(`UPDATE writefence_operation SET result = ? WHERE ${job} AND operation_id = ?`),
    deleteOperation: one(`DELETE FROM writefence_operation WHERE ${job} AND operation_id = ?`),
    list: one(`SELECT scope, job_id AS jobId, operation_id AS operationId, generation,
        ${STATUS_BY} AS status FROM writefence_operation ${INDEXED}
      WHERE ${UNSETTLED} AND (? IS NULL OR scope = ?) AND (? IS NULL OR job_id = ?)
      ORDER BY generation, scope, job_id, operation_id LIMIT ?`),
    prune: one(`DELETE FROM writefence_operation WHERE (scope, job_id, operation_id) IN (
      SELECT o.scope, o.job_id, o.operation_id FROM writefence_operation AS o
      WHERE o.applied_at <= ${AT} - ?
        AND (NOT ? OR EXISTS (SELECT 1 FROM writefence_fence AS f
          WHERE f.scope = o.scope AND f.job_id = o.job_id AND f.sealed))
      ORDER BY o.applied_at LIMIT ?)`),
  }
}

function toFence({ fence: generation, holder, lease_id, sealed }: ViewRow): Fence | undefined {
  if (generation === null) return undefined
  const by: Holder = holder === 'lease' ? { kind: 'lease', leaseId: lease_id } : { kind: holder }
  return { generation, holder: by, sealed: sealed === 1 }
}

function toOperation(row: ViewRow, time: () => number): Operation | undefined {
  const { generation, attempt_id: attemptId, deadline } = row
  if (generation === null) return undefined
  const fingerprint = row.fingerprint ?? undefined
  if (attemptId === null) {
    return { status: 'applied', generation, fingerprint, result: row.result ?? undefined }
  }
  if (deadline === null) return { status: 'unknown', generation, fingerprint, attemptId }
  const remainingMs = Math.max(0, deadline - time())
  const overdue = remainingMs === 0
  return { status: 'in_flight', generation, fingerprint, attemptId, overdue, remainingMs }
}
