/** The SQL of the fence store. */

import { prepare, SQL_NOW, type SqliteDatabase } from './sqlite-database.ts'

export type FenceSql = ReturnType<typeof prepareFenceSql>

const AT = `coalesce(?, ${SQL_NOW})`
const JOB = 'scope = ? AND job_id = ?'

// The planner would walk all records of a job rather than the few that are unsettled. A partial
// index serves only where its condition stands in the query, word for word.
const UNSETTLED = 'attempt_id IS NOT NULL'
const INDEXED = 'INDEXED BY writefence_operation_unsettled'
const OTHER = `${JOB} AND ${UNSETTLED} AND operation_id IS NOT ?`
const STATUS = `CASE WHEN deadline IS NULL THEN 'unknown'
  WHEN deadline <= ? THEN 'overdue' ELSE 'in_flight' END AS status`

export function prepareFenceSql(db: SqliteDatabase) {
  const one = (text: string) => prepare(db, text)
  const savepoint = (name: string) => ({
    begin: one(`SAVEPOINT ${name}`),
    release: one(`RELEASE ${name}`),
    undo: one(`ROLLBACK TO ${name}`),
  })
  const put = (columns: string, values: string) =>
    one(`INSERT OR REPLACE INTO writefence_operation
      (scope, job_id, operation_id, generation, fingerprint, ${columns})
      VALUES (?, ?, ?, ?, ?, ${values})`)
  return {
    unit: savepoint('writefence_unit'),
    effect: savepoint('writefence_effect'),
    now: one(`SELECT ${SQL_NOW} AS now`),
    lock: one(`UPDATE writefence_fence SET generation = generation WHERE ${JOB}`),
    /** The fence, the unit's own operation, and whether others are in flight; rows as arrays. */
    view: one(`
      SELECT f.generation, f.holder, f.lease_id, f.sealed,
        o.generation, o.fingerprint, o.attempt_id, o.deadline, o.result,
        EXISTS (SELECT 1 FROM writefence_operation AS u ${INDEXED}
          WHERE u.scope = k.scope AND u.job_id = k.job_id AND u.attempt_id IS NOT NULL
            AND u.deadline IS NOT NULL AND u.operation_id IS NOT k.operation_id)
      FROM (SELECT ? AS scope, ? AS job_id, ? AS operation_id) AS k
      LEFT JOIN writefence_fence AS f ON f.scope = k.scope AND f.job_id = k.job_id
      LEFT JOIN writefence_operation AS o
        ON o.scope = k.scope AND o.job_id = k.job_id AND o.operation_id = k.operation_id`).raw(),
    oldestInFlight: one(`SELECT generation, deadline FROM writefence_operation ${INDEXED}
      WHERE ${OTHER} AND deadline > ? ORDER BY generation LIMIT 1`),
    oldestOverdue: one(`SELECT generation FROM writefence_operation ${INDEXED}
      WHERE ${OTHER} AND deadline <= ? ORDER BY generation LIMIT 1`),
    census: one(`SELECT ${STATUS}, generation, count(*) AS count
      FROM writefence_operation ${INDEXED} WHERE ${JOB} AND ${UNSETTLED} GROUP BY 1, 2`),
    putFence: one(`
      INSERT INTO writefence_fence (scope, job_id, generation, holder, lease_id, sealed)
      VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (scope, job_id) DO UPDATE SET
      generation = excluded.generation, holder = excluded.holder,
      lease_id = excluded.lease_id, sealed = excluded.sealed`),
    putInFlight: put('attempt_id, deadline', `?, ${AT} + ?`),
    putUnknown: put('attempt_id', '?'),
    putApplied: put('applied_at, result', `${AT}, ?`),
    setResult: one(`UPDATE writefence_operation SET result = ? WHERE ${JOB} AND operation_id = ?`),
    deleteOperation: one(`DELETE FROM writefence_operation WHERE ${JOB} AND operation_id = ?`),
    list: one(`
      SELECT scope, job_id AS jobId, operation_id AS operationId, generation, ${STATUS}
      FROM writefence_operation ${INDEXED}
      WHERE ${UNSETTLED} AND (? IS NULL OR scope = ?) AND (? IS NULL OR job_id = ?)
      ORDER BY generation, scope, job_id, operation_id LIMIT ?`),
    prune: one(`DELETE FROM writefence_operation WHERE (scope, job_id, operation_id) IN (
      SELECT o.scope, o.job_id, o.operation_id FROM writefence_operation AS o
      WHERE o.applied_at <= ${AT} - ? AND (NOT ? OR EXISTS (SELECT 1 FROM writefence_fence AS f
        WHERE f.scope = o.scope AND f.job_id = o.job_id AND f.sealed))
      ORDER BY o.applied_at LIMIT ?)`),
  }
}
