import { publishFault } from '../../events.ts'
import type {
  Done,
  FenceStore,
  JobKey,
  JobView,
  PruneRequest,
  Unit,
  UnsettledOperation,
  UnsettledQuery,
} from '../../guard/fence-store.ts'
import { checkOptionNames, type OptionNames } from '../../options.ts'
import { JobTurns } from '../job-turns.ts'
import { retry } from '../retry.ts'
import { Turns } from '../turns.ts'
import {
  checkTimeout,
  isUndone,
  type PostgresPool,
  type PostgresQueryable,
  type PostgresStoreOptions,
  type Query,
  queryOf,
  STORE_OPTIONS,
  sqlState,
  unavailable,
} from './postgres-database.ts'
import {
  fenceSql,
  fenceStatements,
  type PostgresFenceSql,
  type PostgresFenceStatements,
} from './postgres-fence-statements.ts'
import { createTables, FENCE_TABLES, type PostgresTables, tablesIn } from './postgres-schema.ts'
import {
  bounded,
  type PostgresSession,
  PostgresTransactions,
  type RunOptions,
  UNIT_SAVEPOINT,
} from './postgres-transactions.ts'
import { carryOut, TransactionEnded, type UnitScope } from './postgres-unit.ts'

/** Where the tables are, and how long is waited. */
export interface PostgresFenceStoreOptions extends PostgresStoreOptions {
  /**
   * How long the callback of a write may take, in milliseconds; 30 000 unless told. It holds the
   * job's lock meanwhile, even if this process is stopped: the server ends it then.
   */
  readonly effectTimeoutMs?: number | undefined
}

const NAMES = {
  ...STORE_OPTIONS,
  effectTimeoutMs: true,
} satisfies OptionNames<PostgresFenceStoreOptions>

/**
 * The fence in the database that the effects go to: check, fence, record and effect in one READ
 * COMMITTED transaction, whatever the default isolation is, on a connection of the pool that the
 * effect is given. Nothing is kept in a session, so that a transaction pooler may stand between.
 *
 * `within` takes any client that is inside a transaction, of any isolation level. Under REPEATABLE
 * READ and SERIALIZABLE it fails with PostgreSQL's 40001 as the `cause` where the job has changed
 * since that transaction's snapshot: the transaction is to be repeated.
 */
export class PostgresFenceStore<Client extends PostgresQueryable = PostgresQueryable>
  implements FenceStore<Client, 'async'>
{
  readonly mode = 'async'
  readonly #transactions: PostgresTransactions<Client>
  readonly #tables: PostgresTables
  readonly #sql: PostgresFenceSql
  readonly #now: (() => number) | undefined
  readonly #timeoutMs: number
  readonly #effectTimeoutMs: number
  readonly #turns = new Turns()
  readonly #jobs: JobTurns

  /** @throws TypeError or RangeError naming the option; the database is not asked yet */
  constructor(pool: PostgresPool<Client>, options: PostgresFenceStoreOptions = {}) {
    checkOptionNames(options, NAMES)
    this.#tables = tablesIn(options.schema)
    this.#sql = fenceSql(this.#tables)
    this.#now = options.now
    this.#timeoutMs = checkTimeout('timeoutMs', options.timeoutMs ?? 5000)
    this.#effectTimeoutMs = checkTimeout('effectTimeoutMs', options.effectTimeoutMs ?? 30_000)
    this.#jobs = new JobTurns('PostgreSQL', this.#timeoutMs)
    this.#transactions = new PostgresTransactions(pool, {
      component: FENCE_TABLES,
      tables: this.#tables,
      timeoutMs: this.#timeoutMs,
      longestMs: Math.max(this.#timeoutMs, this.#effectTimeoutMs),
    })
  }

  /**
   * Creates the tables where they are missing; safe when several processes do so at once.
   * @throws StoreUnavailableError where they have another version, or the role may not
   */
  async createSchema(): Promise<void> {
    await this.#run(({ query }) => createTables(query, FENCE_TABLES, this.#tables), { setUp: true })
  }

  async transact<A, R>(unit: Unit<Client, 'async', A, R>): Promise<Done<A, R>> {
    this.#transactions.assertOpen()
    return this.#jobs.take(unit.job, (timeoutMs) => this.#carryOut(unit, timeoutMs))
  }

  async within<A, R>(tx: Client, unit: Unit<Client, 'async', A, R>): Promise<Done<A, R>> {
    this.#transactions.assertOpen()
    return this.#turns.take(tx, () => this.#join(tx, unit))
  }

  async view(job: JobKey, operationId?: string): Promise<JobView> {
    return this.#run(async ({ query }) => {
      const view = await this.#statements(query).view(job, operationId, true)
      await query('ROLLBACK')
      return view
    })
  }

  async list({ scope, jobId, limit = 100 }: UnsettledQuery): Promise<UnsettledOperation[]> {
    return this.#run(async ({ query }) => {
      const operations = await this.#statements(query).list(scope, jobId, limit)
      await query('ROLLBACK')
      return operations
    })
  }

  async prune({ olderThanMs, limit = 1000, sealedOnly = false }: PruneRequest) {
    return this.#run(async ({ query }) => {
      const pruned = await this.#statements(query).prune(olderThanMs, limit, sealedOnly)
      await query('COMMIT')
      return { pruned }
    })
  }

  /** Refuses later calls, withdraws those that wait for a connection; the pool stays open. */
  async close(): Promise<void> {
    this.#transactions.close()
  }

  async #carryOut<A, R>(unit: Unit<Client, 'async', A, R>, timeoutMs: number): Promise<Done<A, R>> {
    const run = (session: PostgresSession<Client>, last: boolean) =>
      carryOut(this.#own(session, last), unit)
    try {
      return await this.#run(run, { timeoutMs })
    } catch (error) {
      if (!(error instanceof TransactionEnded)) throw error
      publishFault({ fault: 'transaction_ended_by_callback', ...unit.job, error })
      // Whether that was a commit or a rollback is not known here: without its effect the unit
      // leaves the fence where it has to be in either case.
      const spoiled = { error: error.cause ?? new TypeError(error.message) }
      return this.#run((session) => carryOut(this.#own(session, true), unit, spoiled))
    }
  }

  /** Runs a unit again while the database undoes it, as a whole and a few times. */
  async #run<T>(
    work: (session: PostgresSession<Client>, last: boolean) => Promise<T>,
    options?: RunOptions,
  ): Promise<T> {
    try {
      const run = (last: boolean) =>
        this.#transactions.run((session) => work(session, last), options)
      return await retry(run, isUndone)
    } catch (error) {
      throw error instanceof TransactionEnded ? error : unavailable(error)
    }
  }

  /** A transaction of the store's own. */
  #own(session: PostgresSession<Client>, last: boolean): UnitScope<Client> {
    const { client: tx, query } = session
    return {
      tx,
      savepoint: UNIT_SAVEPOINT,
      query,
      statements: this.#statements(query),
      callback: (effect) =>
        session.pause(this.#turns.inside(tx, effect), this.#effectTimeoutMs, this.#timeoutMs),
      // In one message, so that nothing that the effect left running gets in between. Constraints
      // that were put off are looked at while there is a savepoint to go back to.
      end: (changed) =>
        query(
          changed
            ? `SET CONSTRAINTS ALL IMMEDIATE; RELEASE SAVEPOINT ${UNIT_SAVEPOINT}; COMMIT`
            : 'ROLLBACK',
        ),
      repeatable: !last,
    }
  }

  /** A transaction of the user's, who may have any driver: one statement to a message. */
  #joined(tx: Client): UnitScope<Client> {
    const send = queryOf(tx)
    const query: Query = (text, values) => bounded(send(text, values), this.#timeoutMs, () => {})
    // Another name for each level of effects within effects, and the same one each time: what
    // servers keep of statements must not grow with the calls.
    const savepoint = `${UNIT_SAVEPOINT}_${this.#turns.depth(tx)}`
    return {
      tx,
      savepoint,
      query,
      statements: this.#statements(query),
      callback: (effect) => this.#turns.inside(tx, effect),
      end: async (changed) => {
        if (!changed) await query(`ROLLBACK TO SAVEPOINT ${savepoint}`)
        await query(`RELEASE SAVEPOINT ${savepoint}`)
      },
      repeatable: false,
    }
  }

  async #join<A, R>(tx: Client, unit: Unit<Client, 'async', A, R>): Promise<Done<A, R>> {
    const scope = this.#joined(tx)
    await scope.query(`SAVEPOINT ${scope.savepoint}`).catch((error: unknown) => {
      if (sqlState(error) !== '25P01') throw unavailable(error)
      throw new TypeError('within needs a client that is inside a transaction: BEGIN first')
    })
    try {
      await this.#transactions.assertTables(scope.query)
      return await carryOut(scope, unit)
    } catch (error) {
      if (error instanceof TransactionEnded) throw error.cause ?? new TypeError(error.message)
      // So that the user's transaction can go on, if it can.
      await scope.query(`ROLLBACK TO SAVEPOINT ${scope.savepoint}`).catch(() => {})
      throw unavailable(error)
    }
  }

  #statements(query: Query): PostgresFenceStatements {
    return fenceStatements(this.#sql, query, this.#now)
  }
}
