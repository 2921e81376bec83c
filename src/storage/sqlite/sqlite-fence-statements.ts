/** The statements of the fence store in the port's words, prepared once a handle. */

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
import type { SqliteDatabase } from './sqlite-database.ts'
import { type FenceSql, prepareFenceSql } from './sqlite-fence-sql.ts'

/** A row of `view`, in the order of its columns. */
type ViewRow = readonly [
  fence: number | null,
  holder: Holder['kind'],
  leaseId: string,
  sealed: number,
  generation: number | null,
  fingerprint: string | null,
  attemptId: string | null,
  deadline: number | null,
  result: string | null,
  others: number,
]

/** What is read and written of jobs, in one connection; the caller holds the transaction. */
export class SqliteFenceStatements {
  readonly savepoints: Pick<FenceSql, 'unit' | 'effect'>
  readonly #sql: FenceSql
  readonly #now: (() => number) | undefined

  /** `now` is the store's clock in tests; `undefined` leaves the time to the database. */
  constructor(db: SqliteDatabase, now: (() => number) | undefined) {
    this.#sql = prepareFenceSql(db)
    this.#now = now
    this.savepoints = this.#sql
  }

  /** Takes the write lock of the database without changing anything. */
  lock({ scope, jobId }: JobKey): void {
    this.#sql.lock.run(scope, jobId)
  }

  view({ scope, jobId }: JobKey, operationId: string | undefined, census: boolean): JobView {
    const key = [scope, jobId, operationId ?? null] as const
    const row = this.#sql.view.get(...key) as ViewRow
    return {
      fence: toFence(row),
      operation: toOperation(row, () => this.#time()),
      pending: row[9] === 1 ? this.#pending(key) : {},
      census: census ? this.#census(scope, jobId) : undefined,
    }
  }

  putFence({ scope, jobId }: JobKey, { generation, holder, sealed }: Fence): void {
    const leaseId = holder.kind === 'lease' ? holder.leaseId : null
    this.#sql.putFence.run(scope, jobId, generation, holder.kind, leaseId, sealed ? 1 : 0)
  }

  putOperation({ scope, jobId }: JobKey, operationId: string, change: OperationChange): void {
    const now = this.#now?.() ?? null
    const { generation, fingerprint = null } = change
    const key = [scope, jobId, operationId, generation, fingerprint] as const
    switch (change.status) {
      case 'in_flight':
        this.#sql.putInFlight.run(...key, change.attemptId, now, change.deadlineMs)
        break
      case 'unknown':
        this.#sql.putUnknown.run(...key, change.attemptId)
        break
      case 'applied':
        this.#sql.putApplied.run(...key, now, change.result ?? null)
    }
  }

  setResult({ scope, jobId }: JobKey, operationId: string, result: string): void {
    this.#sql.setResult.run(result, scope, jobId, operationId)
  }

  deleteOperation({ scope, jobId }: JobKey, operationId: string): void {
    this.#sql.deleteOperation.run(scope, jobId, operationId)
  }

  list(scope: string | null, jobId: string | null, limit: number): UnsettledOperation[] {
    const rows = this.#sql.list.all(this.#time(), scope, scope, jobId, jobId, limit)
    return rows as UnsettledOperation[]
  }

  prune(olderThanMs: number, sealedOnly: boolean, limit: number): number {
    const now = this.#now?.() ?? null
    return this.#sql.prune.run(now, olderThanMs, sealedOnly ? 1 : 0, limit).changes
  }

  #time(): number {
    return this.#now?.() ?? (this.#sql.now.get() as { now: number }).now
  }

  #pending(key: readonly [string, string, string | null]): JobView['pending'] {
    const now = this.#time()
    const oldest = this.#sql.oldestInFlight.get(...key, now) as
      | { generation: number; deadline: number }
      | undefined
    const overdue = this.#sql.oldestOverdue.get(...key, now) as { generation: number } | undefined
    const inFlight: Pending | undefined = oldest && {
      generation: oldest.generation,
      remainingMs: oldest.deadline - now,
    }
    return {
      ...(inFlight && { inFlight }),
      ...(overdue && { overdue: { generation: overdue.generation, remainingMs: 0 } }),
    }
  }

  #census(scope: string, jobId: string): CensusRow[] {
    return this.#sql.census.all(this.#time(), scope, jobId) as CensusRow[]
  }
}

function toFence([generation, holder, leaseId, sealed]: ViewRow): Fence | undefined {
  if (generation === null) return undefined
  const by: Holder = holder === 'lease' ? { kind: 'lease', leaseId } : { kind: holder }
  return { generation, holder: by, sealed: sealed === 1 }
}

function toOperation(row: ViewRow, time: () => number): Operation | undefined {
  const [, , , , generation, fingerprintOrNull, attemptId, deadline, result] = row
  if (generation === null) return undefined
  const fingerprint = fingerprintOrNull ?? undefined
  if (attemptId === null) {
    return { status: 'applied', generation, fingerprint, result: result ?? undefined }
  }
  if (deadline === null) return { status: 'unknown', generation, fingerprint, attemptId }
  const remainingMs = Math.max(0, deadline - time())
  const overdue = remainingMs === 0
  return { status: 'in_flight', generation, fingerprint, attemptId, overdue, remainingMs }
}
