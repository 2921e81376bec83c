import { StoreUnavailableError } from '../../errors.ts'
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
import { checkDuration } from '../../options.ts'
import { JobTurns } from '../job-turns.ts'
import { Turns } from '../turns.ts'
import {
  checkMysqlConnection,
  checkMysqlOptions,
  checkMysqlPool,
  isSavepointGone,
  isUndone,
  type MysqlConnection,
  type MysqlFenceStoreOptions,
  type MysqlPool,
  unavailable,
} from './mysql-database.ts'
import { MysqlFenceStatements } from './mysql-fence-statements.ts'
import { FENCE_SCHEMA } from './mysql-schema.ts'
import type { MysqlSession } from './mysql-session.ts'
import { MysqlTables } from './mysql-tables.ts'
import { MysqlTransactions } from './mysql-transactions.ts'
import { EffectLost, MysqlUnitRunner, savepointOf } from './mysql-unit.ts'

/**
 * The fence in the database that the effects go to: check, fence, record and effect in one
 * transaction of MariaDB or MySQL (InnoDB), on a connection of the user's pool and isolated as its
 * sessions are. The effect is given that connection.
 *
 * The tables are created by `createSchema()`, or by the SQL of the package.
 */
export class MysqlFenceStore<Connection extends MysqlConnection = MysqlConnection>
  implements FenceStore<Connection, 'async'>
{
  readonly mode = 'async'
  readonly #transactions: MysqlTransactions<Connection>
  readonly #tables: MysqlTables
  readonly #statements: MysqlFenceStatements
  readonly #runner: MysqlUnitRunner<Connection>
  readonly #turns = new Turns()
  readonly #jobs: JobTurns
  readonly #effectTimeoutMs: number

  /** @throws TypeError or RangeError naming what is wrong with the pool or the options */
  constructor(pool: MysqlPool<Connection>, options: MysqlFenceStoreOptions = {}) {
    checkMysqlPool(pool)
    const settings = checkMysqlOptions(options, 'fence')
    this.#effectTimeoutMs = checkDuration('effectTimeoutMs', options.effectTimeoutMs ?? 30_000)
    this.#tables = new MysqlTables(FENCE_SCHEMA, settings)
    this.#jobs = new JobTurns('MySQL', settings.timeoutMs)
    const longestMs = Math.max(settings.timeoutMs, this.#effectTimeoutMs)
    this.#transactions = new MysqlTransactions(pool, this.#tables, settings, longestMs)
    this.#statements = new MysqlFenceStatements(this.#tables, settings)
    this.#runner = new MysqlUnitRunner(this.#statements, this.#turns)
  }

  /**
   * Creates the tables where they are missing; safe when several processes do so at once.
   * @throws StoreUnavailableError where it cannot, or where there are tables of another version
   */
  createSchema(): Promise<void> {
    return this.#tables.create(this.#transactions)
  }

  /**
   * One transaction, begun again where the server undoes it (a deadlock). An effect that ends it
   * by itself is not run again, but its fence is put all the same.
   */
  async transact<A, R>(unit: Unit<Connection, 'async', A, R>): Promise<Done<A, R>> {
    this.#transactions.assertOpen()
    return this.#jobs.take(unit.job, () => this.#carryOut(unit))
  }

  #carryOut<A, R>(unit: Unit<Connection, 'async', A, R>): Promise<Done<A, R>> {
    const lost: EffectLost[] = []
    return this.#transactions.run(
      'write',
      async (session, server, last) => {
        await this.#statements.lock(session, unit.job, server, true)
        const { view } = await this.#read(session, unit)
        const leftOut = lost.findLast((each) => each.ended || last)
        const terms = { server, effectTimeoutMs: this.#effectTimeoutMs, leftOut }
        const { done, lasting } = await this.#runner.carryOut(session, unit, view, terms)
        return { value: done, commit: lasting }
      },
      (error) => {
        if (!(error instanceof EffectLost)) return false
        if (error.ended) publishFault({ fault: 'transaction_ended_by_callback', error })
        return lost.push(error) > 0
      },
    )
  }

  /**
   * `tx` is a connection inside a transaction, at any isolation level. What the transaction saw
   * before the job last changed is not enough to write on: then it is refused, to be repeated.
   */
  async within<A, R>(tx: Connection, unit: Unit<Connection, 'async', A, R>): Promise<Done<A, R>> {
    checkMysqlConnection(tx)
    return this.#turns.take(tx, () => this.#join(tx, unit))
  }

  async #join<A, R>(tx: Connection, unit: Unit<Connection, 'async', A, R>): Promise<Done<A, R>> {
    this.#transactions.assertOpen()
    const session = this.#transactions.join(tx)
    const savepoint = savepointOf('unit', this.#turns.depth(tx))
    try {
      if (!(await session.savepoint(savepoint))) {
        throw new TypeError('within needs a connection inside a transaction: begin it first')
      }
      const done = await this.#carryOutWithin(session, unit)
      await session.release(savepoint)
      return done
    } catch (error) {
      throw await explain(session, savepoint, error)
    }
  }

  async #carryOutWithin<A, R>(
    session: MysqlSession<Connection>,
    unit: Unit<Connection, 'async', A, R>,
  ): Promise<Done<A, R>> {
    const { job } = unit
    const server = await this.#tables.check(session)
    // Untouched as yet: a transaction sees its own changes, and would take them for up to date.
    await this.#statements.lock(session, job, server, false)
    const latest = await this.#statements.latestRevision(session, job)
    const { view, revision } = await this.#read(session, unit)
    if (revision !== latest) {
      throw new StoreUnavailableError(
        'MySQL: the job has changed since this transaction first read: repeat it, with this call' +
          ' first or at READ COMMITTED',
      )
    }
    await this.#statements.lock(session, job, server, true)
    return (await this.#runner.carryOut(session, unit, view, { server })).done
  }

  view(job: JobKey, operationId?: string): Promise<JobView> {
    return this.#readOnly(async (session) => {
      const { view } = await this.#read(session, { job, operationId, census: true })
      return view
    })
  }

  list(query: UnsettledQuery): Promise<UnsettledOperation[]> {
    return this.#readOnly((session) => this.#statements.list(session, query))
  }

  prune(request: PruneRequest): Promise<{ readonly pruned: number }> {
    return this.#transactions.run('sweep', async (session, server) => {
      const pruned = await this.#statements.prune(session, request, server)
      return { value: { pruned }, commit: true }
    })
  }

  /** Refuses later calls and those that wait for a connection; the pool stays open. */
  async close(): Promise<void> {
    this.#transactions.close()
  }

  #read(
    session: MysqlSession,
    unit: Pick<Unit<Connection, 'async', unknown>, 'job' | 'operationId' | 'census'>,
  ) {
    return this.#statements.view(session, unit.job, unit.operationId, unit.census ?? false)
  }

  #readOnly<T>(read: (session: MysqlSession) => Promise<T>): Promise<T> {
    return this.#transactions.run('read', async (session) => ({
      value: await read(session),
      commit: false,
    }))
  }
}

/** Undoes what is there of a joined unit, and says what its user has to do. */
async function explain(session: MysqlSession, savepoint: string, error: unknown): Promise<unknown> {
  if (session.usable) {
    try {
      await session.undoTo(savepoint)
    } catch (failure) {
      // What is not known to be undone must not be committed by a user who goes on regardless.
      if (!isSavepointGone(failure)) session.destroy(unavailable(failure))
    }
  }
  if (error instanceof EffectLost) return error.error
  if (isUndone(error)) {
    const repeat = 'MySQL: the server has undone the whole transaction: repeat it'
    return new StoreUnavailableError(repeat, { cause: error })
  }
  const misuse = error instanceof TypeError || error instanceof RangeError
  return misuse ? error : unavailable(error)
}
