import { StoreUnavailableError } from '../../errors.ts'
import { checkLeasePrune, checkLeaseQuery } from '../../lease/lease-arguments.ts'
import { recordOf } from '../../lease/lease-rules.ts'
import type { LeasePruneRequest, LeaseQuery, LeaseRecord } from '../../lease/lease-store.ts'
import { checkId } from '../../token.ts'
import { type LeaseRule, RuledLeaseStore } from '../ruled-lease-store.ts'
import {
  checkMysqlOptions,
  checkMysqlPool,
  type MysqlConnection,
  type MysqlPool,
  type MysqlStoreOptions,
} from './mysql-database.ts'
import { MysqlLeaseStatements } from './mysql-lease-statements.ts'
import { LEASE_SCHEMA } from './mysql-schema.ts'
import type { MysqlSession } from './mysql-session.ts'
import { MysqlTables } from './mysql-tables.ts'
import { MysqlTransactions } from './mysql-transactions.ts'

/** A lease was over before it could be written: the claim or renewal is begun again. */
class TooLate extends StoreUnavailableError {
  constructor() {
    super('MySQL: the lease was over before it was written')
  }
}

/**
 * Leases in MariaDB or MySQL. Each verb is one transaction on a connection of the user's pool; the
 * time is the server's, in UTC, read in a later statement than the one that wins the row.
 *
 * The tables are created by `createSchema()`, or by the SQL of the package.
 */
export class MysqlLeaseStore extends RuledLeaseStore {
  readonly #transactions: MysqlTransactions<MysqlConnection>
  readonly #tables: MysqlTables
  readonly #statements: MysqlLeaseStatements

  /** @throws TypeError or RangeError naming what is wrong with the pool or the options */
  constructor(pool: MysqlPool, options: MysqlStoreOptions = {}) {
    super()
    checkMysqlPool(pool)
    const settings = checkMysqlOptions(options, 'lease')
    this.#tables = new MysqlTables(LEASE_SCHEMA, settings)
    this.#transactions = new MysqlTransactions(pool, this.#tables, settings)
    this.#statements = new MysqlLeaseStatements(this.#tables, settings)
  }

  /**
   * Creates the tables where they are missing; safe when several processes do so at once.
   * @throws StoreUnavailableError where it cannot, or where there are tables of another version
   */
  createSchema(): Promise<void> {
    return this.#tables.create(this.#transactions)
  }

  async get(jobId: string): Promise<LeaseRecord | undefined> {
    const id = checkId('jobId', jobId)
    return this.#read(async (session) => {
      const { row, now } = await this.#statements.find(session, id)
      return row && recordOf(row, now)
    })
  }

  async list(query?: LeaseQuery): Promise<LeaseRecord[]> {
    const checked = checkLeaseQuery(query)
    return this.#read(async (session) => {
      const { rows, now } = await this.#statements.list(session, checked)
      return rows.map((row) => recordOf(row, now))
    })
  }

  async prune(request: LeasePruneRequest): Promise<{ readonly pruned: number }> {
    const checked = checkLeasePrune(request)
    return this.#transactions.run('sweep', async (session, server) => {
      const pruned = await this.#statements.prune(session, checked, server)
      return { value: { pruned }, commit: true }
    })
  }

  /** Refuses later calls and those that wait for a connection; the pool stays open. */
  async close(): Promise<void> {
    this.#transactions.close()
  }

  protected change<A>(jobId: string, rule: LeaseRule<A>): Promise<A> {
    const statements = this.#statements
    return this.#transactions.run(
      'write',
      async (session, server) => {
        await statements.lock(session, jobId, server)
        const { row, now } = await statements.find(session, jobId)
        const { answer, put } = rule(row, now)
        if (put !== undefined && !(await statements.put(session, put))) throw new TooLate()
        if (put !== undefined) return { value: answer, commit: true }
        // Nothing is known of the job, or it is another's: nobody builds on that being durable.
        if (row === undefined || isRefusal(answer)) return { value: answer, commit: false }
        // A repetition is told what was done before, which others see before it is on the disk.
        await statements.touch(session, jobId)
        return { value: answer, commit: true }
      },
      (error) => error instanceof TooLate,
    )
  }

  #read<T>(read: (session: MysqlSession) => Promise<T>): Promise<T> {
    return this.#transactions.run('read', async (session) => ({
      value: await read(session),
      commit: false,
    }))
  }
}

function isRefusal(answer: unknown): boolean {
  const status =
    typeof answer === 'object' && answer !== null && 'status' in answer && answer.status
  return status === 'held' || status === 'lost'
}
