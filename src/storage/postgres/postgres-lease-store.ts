import { checkLeasePrune, checkLeaseQuery } from '../../lease/lease-arguments.ts'
import { recordOf } from '../../lease/lease-rules.ts'
import type { LeasePruneRequest, LeaseQuery, LeaseRecord } from '../../lease/lease-store.ts'
import { checkOptionNames } from '../../options.ts'
import { checkId } from '../../token.ts'
import { retry } from '../retry.ts'
import { type LeaseRule, RuledLeaseStore } from '../ruled-lease-store.ts'
import {
  checkTimeout,
  isUndone,
  type PostgresPool,
  type PostgresQueryable,
  type PostgresStoreOptions,
  type Query,
  STORE_OPTIONS,
  unavailable,
} from './postgres-database.ts'
import {
  type Found,
  leaseSql,
  leaseStatements,
  type PostgresLeaseSql,
} from './postgres-lease-statements.ts'
import { createTables, LEASE_TABLES, type PostgresTables, tablesIn } from './postgres-schema.ts'
import {
  type PostgresSession,
  PostgresTransactions,
  type RunOptions,
} from './postgres-transactions.ts'

/**
 * Leases in PostgreSQL. Each verb is one READ COMMITTED transaction on a connection of the pool,
 * with the row of the job locked; the time is the database's, read after the lock was won.
 */
export class PostgresLeaseStore extends RuledLeaseStore {
  readonly #transactions: PostgresTransactions<PostgresQueryable>
  readonly #tables: PostgresTables
  readonly #sql: PostgresLeaseSql
  readonly #now: (() => number) | undefined

  /** @throws TypeError or RangeError naming the option; the database is not asked yet */
  constructor(pool: PostgresPool<PostgresQueryable>, options: PostgresStoreOptions = {}) {
    super()
    checkOptionNames(options, STORE_OPTIONS)
    this.#tables = tablesIn(options.schema)
    this.#sql = leaseSql(this.#tables)
    this.#now = options.now
    const timeoutMs = checkTimeout('timeoutMs', options.timeoutMs ?? 5000)
    this.#transactions = new PostgresTransactions(pool, {
      component: LEASE_TABLES,
      tables: this.#tables,
      timeoutMs,
      longestMs: timeoutMs,
    })
  }

  /**
   * Creates the tables where they are missing; safe when several processes do so at once.
   * @throws StoreUnavailableError where they have another version, or the role may not
   */
  async createSchema(): Promise<void> {
    await this.#run(({ query }) => createTables(query, LEASE_TABLES, this.#tables), { setUp: true })
  }

  async get(jobId: string): Promise<LeaseRecord | undefined> {
    const id = checkId('jobId', jobId)
    return toRecord(await this.#read((statements) => statements.find(id)))
  }

  async list(query?: LeaseQuery): Promise<LeaseRecord[]> {
    const checked = checkLeaseQuery(query)
    const found = await this.#read((statements) => statements.list(checked))
    return found.map(toRecord).filter((record) => record !== undefined)
  }

  async prune(request: LeasePruneRequest): Promise<{ readonly pruned: number }> {
    const { olderThanMs, limit } = checkLeasePrune(request)
    return this.#run(async ({ query }) => {
      const pruned = await this.#statements(query).prune(olderThanMs, limit)
      await query('COMMIT')
      return { pruned }
    })
  }

  async close(): Promise<void> {
    this.#transactions.close()
  }

  protected change<A>(jobId: string, rule: LeaseRule<A>): Promise<A> {
    return this.#run(async ({ query }) => {
      const statements = this.#statements(query)
      await statements.lock(jobId)
      // A later statement than the lock wait, for the row and for the time.
      const { row, now } = await statements.find(jobId)
      const { answer, put } = rule(row, now)
      if (put !== undefined) await statements.put(put)
      await query(put === undefined ? 'ROLLBACK' : 'COMMIT')
      return answer
    })
  }

  #read<T>(read: (statements: ReturnType<typeof leaseStatements>) => Promise<T>): Promise<T> {
    return this.#run(async ({ query }) => {
      const found = await read(this.#statements(query))
      await query('ROLLBACK')
      return found
    })
  }

  async #run<T>(
    work: (session: PostgresSession<PostgresQueryable>) => Promise<T>,
    options?: RunOptions,
  ): Promise<T> {
    try {
      return await retry(() => this.#transactions.run(work, options), isUndone)
    } catch (error) {
      throw unavailable(error)
    }
  }

  #statements(query: Query): ReturnType<typeof leaseStatements> {
    return leaseStatements(this.#sql, query, this.#now)
  }
}

function toRecord({ row, now }: Found): LeaseRecord | undefined {
  return row && recordOf(row, now)
}
