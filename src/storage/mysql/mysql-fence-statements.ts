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
  PruneRequest,
  UnsettledOperation,
  UnsettledQuery,
} from '../../guard/fence-store.ts'
import { bytes, type MysqlSettings, SQL_NOW } from './mysql-database.ts'
import {
  type MysqlRow,
  type MysqlServer,
  type MysqlSession,
  toNumber,
  toText,
} from './mysql-session.ts'
import type { MysqlTables } from './mysql-tables.ts'

/** A job as it was read: what the unit sees, and which change of the job it is the state after. */
export interface MysqlView {
  readonly view: JobView
  readonly revision: number
}

type ViewRow = MysqlRow<
  | 'fence'
  | 'holder'
  | 'lease_id'
  | 'sealed'
  | 'revision'
  | 'status'
  | 'generation'
  | 'fingerprint'
  | 'attempt_id'
  | 'deadline'
  | 'result'
  | 'now'
  | 'others'
>

const UNSETTLED = "status IN ('in_flight', 'unknown')"
const statusAt = (now: string | number) =>
  `CASE WHEN deadline IS NULL THEN 'unknown' WHEN deadline <= ${now} THEN 'overdue'
   ELSE 'in_flight' END`

export class MysqlFenceStatements {
  readonly #fence: string
  readonly #operation: string
  readonly #now: () => string

  constructor(tables: MysqlTables, { now }: MysqlSettings) {
    this.#fence = tables.name('fence')
    this.#operation = tables.name('operation')
    this.#now = () => String(now?.() ?? SQL_NOW)
  }

  /**
   * Locks the job, by its row or, where there is none yet, by a new one of generation 0, which
   * stands for none. One statement for both, since a lock on a gap between rows would make first
   * writers of different jobs wait for each other in a circle.
   *
   * `touch` changes the row even if the unit then changes nothing. So a commit that answers has
   * something to make durable, and everything older with it: InnoDB shows a commit to others
   * before it is on the disk. And nodes of a cluster see that two of them worked on one job.
   */
  async lock(session: MysqlSession, job: JobKey, server: MysqlServer, touch: boolean) {
    const revision = touch ? 'revision + 1' : 'revision'
    await session.runWaiting(
      `INSERT INTO ${this.#fence} (scope, job_id, generation, holder, sealed, revision)
       VALUES (${bytes(job.scope)}, ${bytes(job.jobId)}, 0, 'none', 0, 1)
       ON DUPLICATE KEY UPDATE revision = ${revision}`,
      server,
    )
  }

  /** The revision as it is now, whatever snapshot the transaction reads. */
  async latestRevision(session: MysqlSession, job: JobKey): Promise<number> {
    const [row] = await session.rows<'revision'>(
      `SELECT revision FROM ${this.#fence} WHERE ${keyOf(job)} FOR UPDATE`,
    )
    return toNumber(row?.revision)
  }

  async view(
    session: MysqlSession,
    job: JobKey,
    operationId: string | undefined,
    census: boolean,
  ): Promise<MysqlView> {
    // An empty text is no id: where the unit names no operation, none is found.
    const own = bytes(operationId ?? '')
    const [row] = await session.rows<keyof ViewRow>(
      `SELECT f.generation AS fence, f.holder, f.lease_id, f.sealed, f.revision, o.status,
         o.generation, o.fingerprint, o.attempt_id, o.deadline, o.result, ${this.#now()} AS now,
         EXISTS (SELECT 1 FROM ${this.#operation} AS u WHERE ${keyOf(job, 'u.')}
           AND u.status = 'in_flight' AND u.operation_id <> ${own}) AS others
       FROM (SELECT 1) AS one
       LEFT JOIN ${this.#fence} AS f ON ${keyOf(job, 'f.')}
       LEFT JOIN ${this.#operation} AS o ON ${keyOf(job, 'o.')} AND o.operation_id = ${own}`,
    )
    if (row === undefined) throw new Error('a SELECT without a WHERE found no row')
    const now = toNumber(row.now)
    const view = {
      fence: toFence(row),
      operation: toOperation(row, now),
      pending: toNumber(row.others) === 1 ? await this.#pending(session, job, own, now) : {},
      census: census ? await this.#census(session, job, now) : undefined,
    }
    return { view, revision: toNumber(row.revision) }
  }

  /** The row is there: it has been locked. */
  async putFence(session: MysqlSession, job: JobKey, { generation, holder, sealed }: Fence) {
    const leaseId = holder.kind === 'lease' ? holder.leaseId : undefined
    await session.run(
      `UPDATE ${this.#fence} SET generation = ${generation}, holder = '${holder.kind}',
         lease_id = ${bytes(leaseId)}, sealed = ${sealed ? 1 : 0} WHERE ${keyOf(job)}`,
    )
  }

  /** `known` says whether there is a record to replace: a blind upsert would lock gaps. */
  async putOperation(
    session: MysqlSession,
    job: JobKey,
    operationId: string,
    change: OperationChange,
    known: boolean,
  ): Promise<void> {
    const columns = `status = '${change.status}', generation = ${change.generation},
      fingerprint = ${bytes(change.fingerprint)}, ${this.#columnsOf(change)}`
    await session.run(
      known
        ? `UPDATE ${this.#operation} SET ${columns} WHERE ${keyOf(job)}
             AND operation_id = ${bytes(operationId)}`
        : `INSERT INTO ${this.#operation} SET scope = ${bytes(job.scope)},
             job_id = ${bytes(job.jobId)}, operation_id = ${bytes(operationId)}, ${columns}`,
    )
  }

  async setResult(session: MysqlSession, job: JobKey, operationId: string, result: string) {
    await session.run(
      `UPDATE ${this.#operation} SET result = ${bytes(result)}
       WHERE ${keyOf(job)} AND operation_id = ${bytes(operationId)}`,
    )
  }

  async deleteOperation(session: MysqlSession, job: JobKey, operationId: string) {
    await session.run(
      `DELETE FROM ${this.#operation}
       WHERE ${keyOf(job)} AND operation_id = ${bytes(operationId)}`,
    )
  }

  async list(
    session: MysqlSession,
    { scope, jobId, limit = 100 }: UnsettledQuery,
  ): Promise<UnsettledOperation[]> {
    const rows = await session.rows<'scope' | 'job_id' | 'operation_id' | 'generation' | 'state'>(
      `SELECT scope, job_id, operation_id, generation, ${statusAt(this.#now())} AS state
       FROM ${this.#operation} WHERE ${UNSETTLED}
         ${scope === undefined ? '' : `AND scope = ${bytes(scope)}`}
         ${jobId === undefined ? '' : `AND job_id = ${bytes(jobId)}`}
       ORDER BY generation, scope, job_id, operation_id LIMIT ${limit}`,
    )
    return rows.map((row) => ({
      scope: toText(row.scope) ?? '',
      jobId: toText(row.job_id) ?? '',
      operationId: toText(row.operation_id) ?? '',
      generation: toNumber(row.generation),
      status: toText(row.state) as UnsettledOperation['status'],
    }))
  }

  /** Answers how many were deleted. */
  prune(
    session: MysqlSession,
    { olderThanMs, limit = 1000, sealedOnly }: PruneRequest,
    server: MysqlServer,
  ): Promise<number> {
    const operation = this.#operation
    const sealed = `AND EXISTS (SELECT 1 FROM ${this.#fence} AS f WHERE f.scope = ${operation}.scope
      AND f.job_id = ${operation}.job_id AND f.sealed = 1)`
    return session.runWaiting(
      `DELETE FROM ${operation} WHERE applied_at <= ${this.#now()} - ${olderThanMs}
       ${sealedOnly ? sealed : ''} ORDER BY applied_at LIMIT ${limit}`,
      server,
    )
  }

  async #pending(session: MysqlSession, job: JobKey, own: string, now: number) {
    const oldest = (when: string) =>
      `(SELECT generation, deadline FROM ${this.#operation} WHERE status = 'in_flight'
        AND ${keyOf(job)} AND operation_id <> ${own} AND ${when} ORDER BY generation LIMIT 1)`
    const rows = await session.rows<'generation' | 'deadline'>(
      `${oldest(`deadline > ${now}`)} UNION ALL ${oldest(`deadline <= ${now}`)}`,
    )
    const pending: { inFlight?: Pending; overdue?: Pending } = {}
    for (const row of rows) {
      const generation = toNumber(row.generation)
      const remainingMs = Math.max(0, toNumber(row.deadline) - now)
      pending[remainingMs > 0 ? 'inFlight' : 'overdue'] = { generation, remainingMs }
    }
    return pending
  }

  async #census(session: MysqlSession, job: JobKey, now: number): Promise<CensusRow[]> {
    const rows = await session.rows<'state' | 'generation' | 'count'>(
      `SELECT ${statusAt(now)} AS state, generation, COUNT(*) AS count FROM ${this.#operation}
       WHERE ${UNSETTLED} AND ${keyOf(job)} GROUP BY 1, 2`,
    )
    return rows.map((row) => ({
      status: toText(row.state) as CensusRow['status'],
      generation: toNumber(row.generation),
      count: toNumber(row.count),
    }))
  }

  /** What depends on the status; all of it is said, so that nothing of an older record is left. */
  #columnsOf(change: OperationChange): string {
    const columns = (attempt: string, deadline: string, appliedAt: string, result: string) =>
      `attempt_id = ${attempt}, deadline = ${deadline}, applied_at = ${appliedAt},
       result = ${result}`
    switch (change.status) {
      case 'in_flight':
        return columns(
          bytes(change.attemptId),
          `${this.#now()} + ${change.deadlineMs}`,
          'NULL',
          'NULL',
        )
      case 'unknown':
        return columns(bytes(change.attemptId), 'NULL', 'NULL', 'NULL')
      case 'applied':
        return columns('NULL', 'NULL', this.#now(), bytes(change.result))
    }
  }
}

function keyOf({ scope, jobId }: JobKey, alias = ''): string {
  return `${alias}scope = ${bytes(scope)} AND ${alias}job_id = ${bytes(jobId)}`
}

function toFence(row: ViewRow): Fence | undefined {
  const generation = toNumber(row.fence)
  if (generation === 0) return undefined
  const kind = toText(row.holder) as Holder['kind']
  const holder = kind === 'lease' ? { kind, leaseId: toText(row.lease_id) ?? '' } : { kind }
  return { generation, holder, sealed: toNumber(row.sealed) === 1 }
}

function toOperation(row: ViewRow, now: number): Operation | undefined {
  const generation = toNumber(row.generation)
  const fingerprint = toText(row.fingerprint)
  const attemptId = toText(row.attempt_id) ?? ''
  switch (toText(row.status) as Operation['status'] | undefined) {
    case undefined:
      return undefined
    case 'applied':
      return { status: 'applied', generation, fingerprint, result: toText(row.result) }
    case 'unknown':
      return { status: 'unknown', generation, fingerprint, attemptId }
    case 'in_flight': {
      const remainingMs = Math.max(0, toNumber(row.deadline) - now)
      const overdue = remainingMs === 0
      return { status: 'in_flight', generation, fingerprint, attemptId, overdue, remainingMs }
    }
  }
}
