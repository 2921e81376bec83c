import { StoreUnavailableError } from '../../errors.ts'
import {
  checkAtLeast,
  checkClaim,
  checkLeaseKey,
  checkLeasePrune,
  checkLeaseQuery,
  checkRenewal,
  newLeaseId,
} from '../../lease/lease-arguments.ts'
import {
  claimRule,
  completeRule,
  forceReleaseRule,
  type LeaseRow,
  type LeaseRuling,
  raiseRule,
  recordOf,
  releaseRule,
  renewRule,
  reopenRule,
} from '../../lease/lease-rules.ts'
import type {
  ClaimRequest,
  ClaimResult,
  CompleteResult,
  LeaseKey,
  LeasePruneRequest,
  LeaseQuery,
  LeaseRecord,
  LeaseStore,
  ReleaseResult,
  RenewResult,
} from '../../lease/lease-store.ts'
import { checkId } from '../../token.ts'
import {
  checkSqliteOptions,
  type SqliteDatabase,
  type SqliteStoreOptions,
} from './sqlite-database.ts'
import { leaseStatements, type SqliteLeaseStatements } from './sqlite-lease-statements.ts'
import { LEASE_SCHEMA, setUpSchema, warnIfLessDurable } from './sqlite-schema.ts'
import { SqliteWriter } from './sqlite-writer.ts'

/**
 * Leases in SQLite. Each verb is one IMMEDIATE transaction, shared with the other calls of its turn
 * of the event loop; the time is the database's, read inside it, after the lock was won.
 *
 * @throws TypeError or RangeError naming the option
 * @throws StoreUnavailableError where the tables cannot be set up or have another version
 */
export class SqliteLeaseStore implements LeaseStore {
  readonly #writer: SqliteWriter
  readonly #statements: SqliteLeaseStatements

  constructor(db: SqliteDatabase, options: SqliteStoreOptions = {}) {
    checkSqliteOptions(options)
    setUpSchema(db, LEASE_SCHEMA)
    warnIfLessDurable(db)
    this.#writer = new SqliteWriter(db, options)
    this.#statements = leaseStatements(db, options.now)
  }

  async claim(request: ClaimRequest): Promise<ClaimResult> {
    const { jobId, owner, ttlMs, leaseId = newLeaseId() } = checkClaim(request)
    const answer = await this.#change(jobId, (row, now) =>
      claimRule(row, { jobId, owner, ttlMs }, leaseId, now),
    )
    if (answer instanceof StoreUnavailableError) throw answer
    return answer
  }

  async renew(lease: LeaseKey & { readonly ttlMs: number }): Promise<RenewResult> {
    const { ttlMs, ...key } = checkRenewal(lease)
    return this.#change(key.jobId, (row, now) => renewRule(row, key, ttlMs, now))
  }

  async complete(lease: LeaseKey): Promise<CompleteResult> {
    const key = checkLeaseKey(lease)
    return this.#change(key.jobId, (row, now) => completeRule(row, key, now))
  }

  async release(lease: LeaseKey): Promise<ReleaseResult> {
    const key = checkLeaseKey(lease)
    return this.#change(key.jobId, (row, now) => releaseRule(row, key, now))
  }

  async get(jobId: string): Promise<LeaseRecord | undefined> {
    const id = checkId('jobId', jobId)
    return this.#writer.read(() => {
      const { row, now } = this.#statements.find(id)
      return row && recordOf(row, now)
    })
  }

  async list(query?: LeaseQuery): Promise<LeaseRecord[]> {
    const checked = checkLeaseQuery(query)
    return this.#writer.read(() => {
      const { rows, now } = this.#statements.list(checked)
      return rows.map((row) => recordOf(row, now))
    })
  }

  async raise(jobId: string, atLeast: number): Promise<LeaseRecord> {
    const id = checkId('jobId', jobId)
    const above = checkAtLeast(atLeast)
    return this.#change(id, (row, now) => raiseRule(row, id, above, now))
  }

  async forceRelease(jobId: string): Promise<LeaseRecord | undefined> {
    return this.#change(checkId('jobId', jobId), forceReleaseRule)
  }

  async reopen(jobId: string): Promise<LeaseRecord | undefined> {
    return this.#change(checkId('jobId', jobId), reopenRule)
  }

  async prune(request: LeasePruneRequest): Promise<{ readonly pruned: number }> {
    const { olderThanMs, limit } = checkLeasePrune(request)
    return this.#writer.submit(() => ({ pruned: this.#statements.prune(olderThanMs, limit) }))
  }

  async close(): Promise<void> {
    this.#writer.close()
  }

  #change<A>(
    jobId: string,
    rule: (row: LeaseRow | undefined, now: number) => LeaseRuling<A>,
  ): Promise<A> {
    return this.#writer.submit(() => {
      const { row, now } = this.#statements.find(jobId)
      const { answer, put } = rule(row, now)
      if (put !== undefined) this.#statements.put(put)
      return answer
    })
  }
}
