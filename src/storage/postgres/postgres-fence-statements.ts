/** The SQL of the fence store, and its rows turned into the port's words. */

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
import { type Query, SQL_NOW } from './postgres-database.ts'
import type { PostgresTables } from './postgres-schema.ts'

/** Integers come as strings, numbers or bigints, as the driver has been told to read them. */
type Int = number | string | bigint

/** The id of a job's row, as the driver reads it. */
export type FenceId = Int

interface ViewRow {
  generation: Int
  holder: Holder['kind']
  lease_id: string
  sealed: boolean
  status: Operation['status'] | null
  of_generation: Int
  fingerprint: string | null
  attempt_id: string
  remaining_ms: Int
  result: string | null
  in_flight: Int | null
  in_flight_ms: Int
  overdue: Int | null
  census: string | null
}

interface UnsettledRow {
  scope: string
  job_id: string
  operation_id: string
  generation: Int
  status: UnsettledOperation['status']
}

export type PostgresFenceSql = ReturnType<typeof fenceSql>
export type PostgresFenceStatements = ReturnType<typeof fenceStatements>

/** `now` is the store's clock in tests; `undefined` leaves the time to the database. */
export function fenceStatements(
  sql: PostgresFenceSql,
  query: Query,
  now: (() => number) | undefined,
) {
  const given = () => now?.() ?? null

  return {
    /** Waits for the job's row, which it makes where there is none, and returns its id. */
    async lock({ scope, jobId }: JobKey): Promise<FenceId> {
      for (;;) {
        const [locked] = await query<{ id: FenceId }>(sql.lock, [scope, jobId])
        if (locked !== undefined) return locked.id
        const [made] = await query<{ id: FenceId }>(sql.make, [scope, jobId])
        if (made !== undefined) return made.id
        // Another transaction has made it in between.
      }
    },

    async view({ scope, jobId }: JobKey, operationId: string | undefined, census: boolean) {
      const values = [scope, jobId, operationId ?? null, given()]
      const [row] = await query<ViewRow>(census ? sql.viewAndCensus : sql.view, values)
      return toView(row, census)
    },

    putFence: (id: FenceId, { generation, holder, sealed }: Fence) =>
      query(sql.putFence, [
        id,
        generation,
        holder.kind,
        holder.kind === 'lease' ? holder.leaseId : null,
        sealed,
      ]),

    putOperation: (id: FenceId, operationId: string, change: OperationChange) =>
      query(sql.putOperation, [
        id,
        operationId,
        change.status,
        change.generation,
        change.fingerprint ?? null,
        change.status === 'applied' ? null : change.attemptId,
        change.status === 'in_flight' ? change.deadlineMs : null,
        change.status === 'applied' ? (change.result ?? null) : null,
        given(),
      ]),

    setResult: (id: FenceId, operationId: string, result: string) =>
      query(sql.setResult, [id, operationId, result]),

    deleteOperation: (id: FenceId, operationId: string) =>
      query(sql.deleteOperation, [id, operationId]),

    async list(scope: string | undefined, jobId: string | undefined, limit: number) {
      const values = [scope ?? null, jobId ?? null, limit, given()]
      return (await query<UnsettledRow>(sql.list, values)).map(toUnsettled)
    },

    async prune(olderThanMs: number, limit: number, sealedOnly: boolean): Promise<number> {
      const values = [olderThanMs, limit, sealedOnly, given()]
      const [row] = await query<{ pruned: Int }>(sql.prune, values)
      return Number(row?.pruned ?? 0)
    },
  }
}

/** Every parameter has its type: not every driver behind `within` asks the server for it. */
export function fenceSql({ fence, operation }: PostgresTables) {
  const at = (parameter: string) =>
    `at AS MATERIALIZED (SELECT coalesce(${parameter}::bigint, ${SQL_NOW}) AS now)`
  // Under snapshot isolation a lock does not conflict, a changed row does. Whoever changes a job's
  // operations updates its fence, so that a transaction whose snapshot is older fails in `lock`.
  const touched = `touched AS (UPDATE ${fence} SET generation = generation WHERE id = $1::bigint)`
  const other = (when: string) => `SELECT p.generation, p.deadline FROM ${operation} AS p
      WHERE p.fence_id = f.id AND p.status = 'in_flight' AND p.deadline ${when} at.now
        AND p.operation_id IS DISTINCT FROM $3::text
      ORDER BY p.generation LIMIT 1`
  const statusBy = (row: string) =>
    `CASE WHEN ${row}.status = 'in_flight' AND ${row}.deadline <= at.now
      THEN 'overdue' ELSE ${row}.status END`
  const view = (census: string) => `WITH ${at('$4')}
    SELECT f.generation, f.holder, f.lease_id, f.sealed,
      o.status, o.generation AS of_generation, o.fingerprint, o.attempt_id,
      o.deadline - at.now AS remaining_ms, o.result,
      i.generation AS in_flight, i.deadline - at.now AS in_flight_ms,
      d.generation AS overdue, ${census} AS census
    FROM at JOIN ${fence} AS f ON f.scope = $1::text AND f.job_id = $2::text
    LEFT JOIN ${operation} AS o ON o.fence_id = f.id AND o.operation_id = $3::text
    LEFT JOIN LATERAL (${other('>')}) AS i ON true
    LEFT JOIN LATERAL (${other('<=')}) AS d ON true`
  return {
    lock: `SELECT id FROM ${fence} WHERE scope = $1::text AND job_id = $2::text FOR UPDATE`,
    // Generation 0 is no fence yet, and is never committed.
    make: `INSERT INTO ${fence} (scope, job_id, generation, holder, sealed)
      VALUES ($1::text, $2::text, 0, 'none', false)
      ON CONFLICT (scope, job_id) DO NOTHING RETURNING id`,
    view: view('NULL::text'),
    viewAndCensus: view(`(SELECT json_agg(c)::text FROM (
      SELECT ${statusBy('u')} AS status, u.generation, count(*) AS count FROM ${operation} AS u
      WHERE u.fence_id = f.id AND u.status <> 'applied' GROUP BY 1, 2) AS c)`),
    putFence: `UPDATE ${fence} SET generation = $2::bigint, holder = $3::text,
      lease_id = $4::text, sealed = $5::boolean WHERE id = $1::bigint`,
    putOperation: `WITH ${touched}, ${at('$9')}
      INSERT INTO ${operation} AS o (fence_id, operation_id, status, generation, fingerprint,
        attempt_id, deadline, applied_at, result)
      SELECT $1::bigint, $2::text, $3::text, $4::bigint, $5::text, $6::text, at.now + $7::bigint,
        CASE WHEN $3::text = 'applied' THEN at.now END, $8::text FROM at
      ON CONFLICT (fence_id, operation_id) DO UPDATE SET status = excluded.status,
        generation = excluded.generation, fingerprint = excluded.fingerprint,
        attempt_id = excluded.attempt_id, deadline = excluded.deadline,
        applied_at = excluded.applied_at, result = excluded.result`,
    setResult: `UPDATE ${operation} SET result = $3::text
      WHERE fence_id = $1::bigint AND operation_id = $2::text`,
    deleteOperation: `WITH ${touched}
      DELETE FROM ${operation} WHERE fence_id = $1::bigint AND operation_id = $2::text`,
    list: `WITH ${at('$4')}
      SELECT f.scope, f.job_id, o.operation_id, o.generation, ${statusBy('o')} AS status
      FROM at, ${operation} AS o JOIN ${fence} AS f ON f.id = o.fence_id
      WHERE o.status <> 'applied'
        AND ($1::text IS NULL OR f.scope = $1::text)
        AND ($2::text IS NULL OR f.job_id = $2::text)
      ORDER BY o.generation, f.scope, f.job_id, o.operation_id LIMIT $3::bigint`,
    // A record that somebody is about to change is left for the next batch: a prune waits for
    // nobody, so that nobody can wait for it in a circle. Of a table that was partitioned each part
    // has rows of its own at the same ctid.
    prune: `WITH ${at('$4')}, due AS MATERIALIZED (
        SELECT o.tableoid AS part, o.ctid AS place FROM ${operation} AS o
        WHERE o.status = 'applied' AND o.applied_at <= (SELECT now - $1::bigint FROM at)
          AND (NOT $3::boolean
            OR EXISTS (SELECT FROM ${fence} AS f WHERE f.id = o.fence_id AND f.sealed))
        ORDER BY o.applied_at LIMIT $2::bigint FOR UPDATE OF o SKIP LOCKED),
      gone AS (DELETE FROM ${operation} AS o WHERE o.ctid = ANY (ARRAY(SELECT place FROM due))
        AND (o.tableoid, o.ctid) IN (SELECT part, place FROM due) RETURNING 1)
      SELECT count(*) AS pruned FROM gone`,
  }
}

function toView(row: ViewRow | undefined, census: boolean): JobView {
  const known = row !== undefined && Number(row.generation) > 0 ? row : undefined
  return {
    fence: known && toFence(known),
    operation: known && toOperation(known),
    pending: known === undefined ? {} : toPending(known),
    census: census ? (JSON.parse(known?.census ?? '[]') as CensusRow[]) : undefined,
  }
}

function toFence(row: ViewRow): Fence {
  const holder: Holder =
    row.holder === 'lease' ? { kind: 'lease', leaseId: row.lease_id } : { kind: row.holder }
  return { generation: Number(row.generation), holder, sealed: row.sealed }
}

function toOperation(row: ViewRow): Operation | undefined {
  const known = {
    generation: Number(row.of_generation),
    fingerprint: row.fingerprint ?? undefined,
  }
  switch (row.status) {
    case null:
      return undefined
    case 'applied':
      return { status: 'applied', ...known, result: row.result ?? undefined }
    case 'unknown':
      return { status: 'unknown', ...known, attemptId: row.attempt_id }
    case 'in_flight': {
      const remainingMs = Math.max(0, Number(row.remaining_ms))
      const overdue = remainingMs === 0
      return { status: 'in_flight', ...known, attemptId: row.attempt_id, overdue, remainingMs }
    }
  }
}

function toPending(row: ViewRow): JobView['pending'] {
  const pending: { inFlight?: Pending; overdue?: Pending } = {}
  if (row.in_flight !== null) {
    pending.inFlight = {
      generation: Number(row.in_flight),
      remainingMs: Number(row.in_flight_ms),
    }
  }
  if (row.overdue !== null) pending.overdue = { generation: Number(row.overdue), remainingMs: 0 }
  return pending
}

function toUnsettled({ scope, job_id, operation_id, generation, status }: UnsettledRow) {
  return {
    scope,
    jobId: job_id,
    operationId: operation_id,
    generation: Number(generation),
    status,
  }
}
