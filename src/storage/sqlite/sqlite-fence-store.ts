import { StoreUnavailableError } from '../../errors.ts'
import type {
  Done,
  FenceStore,
  JobKey,
  JobView,
  PruneRequest,
  Step,
  Unit,
  UnsettledOperation,
  UnsettledQuery,
} from '../../guard/fence-store.ts'
import {
  checkSqliteOptions,
  isBusy,
  isOccupied,
  type SqliteDatabase,
  type SqliteStoreOptions,
  unavailable,
} from './sqlite-database.ts'
import { SqliteFenceStatements } from './sqlite-fence-statements.ts'
import { FENCE_SCHEMA, setUpSchema, warnIfLessDurable } from './sqlite-schema.ts'
import { TransactionEnded } from './sqlite-transaction.ts'
import { type Spoiled, SqliteWriter } from './sqlite-writer.ts'

/**
 * The fence in the database that the effects go to: check, fence, record and effect in one
 * IMMEDIATE transaction on the user's own handle. Calls of one turn of the event loop share it,
 * each in a savepoint of its own, and are answered after its commit.
 *
 * @throws TypeError or RangeError naming the option
 * @throws StoreUnavailableError where the tables cannot be set up or have another version
 */
export class SqliteFenceStore<Db extends SqliteDatabase = SqliteDatabase>
  implements FenceStore<Db, 'sync'>
{
  readonly mode = 'sync'
  readonly #db: Db
  readonly #now: (() => number) | undefined
  readonly #writer: SqliteWriter
  readonly #statements: SqliteFenceStatements
  readonly #joined = new WeakMap<SqliteDatabase, SqliteFenceStatements>()
  #closed = false

  constructor(db: Db, options: SqliteStoreOptions = {}) {
    checkSqliteOptions(options)
    setUpSchema(db, FENCE_SCHEMA)
    warnIfLessDurable(db)
    this.#db = db
    this.#now = options.now
    this.#writer = new SqliteWriter(db, options)
    this.#statements = new SqliteFenceStatements(db, options.now)
    this.#joined.set(db, this.#statements)
  }

  transact<A, R>(unit: Unit<Db, 'sync', A, R>): Promise<Done<A, R>> {
    if (unit.insideTransaction === 'refuse' && this.#writer.insideTransaction) {
      return Promise.reject(
        new TypeError(
          'the handle is inside a transaction, which could undo what is meant to be durable:' +
            ' call effect, advance, seal, reopen and resolve outside of it',
        ),
      )
    }
    return this.#writer.submit((spoiled) => run(this.#db, this.#statements, unit, spoiled))
  }

  transactSync<A, R>(unit: Unit<Db, 'sync', A, R>): Done<A, R> {
    return this.#writer.submitSync((spoiled) => run(this.#db, this.#statements, unit, spoiled))
  }

  /** `tx` is the store's handle, or another one on the same file, inside a transaction. */
  within<A, R>(tx: Db, unit: Unit<Db, 'sync', A, R>): Done<A, R> {
    if (this.#closed) throw new StoreUnavailableError('the store is closed')
    if (!tx.inTransaction) {
      throw new TypeError('within needs a handle inside a transaction: BEGIN IMMEDIATE first')
    }
    const statements = this.#statementsOf(tx)
    const { begin, release, undo } = statements.savepoints.unit
    try {
      begin.run()
      // A verdict on an old snapshot is worth nothing. The lock is refused where there is one.
      statements.lock(unit.job)
      const done = run(tx, statements, unit, undefined)
      release.run()
      return done
    } catch (error) {
      if (error instanceof TransactionEnded) throw error.cause ?? new TypeError(error.message)
      if (tx.inTransaction) {
        undo.run()
        release.run()
      }
      throw isBusy(error) ? lockedOut(error) : unavailable(error)
    }
  }

  view(job: JobKey, operationId?: string): Promise<JobView> {
    const { begin, release } = this.#statements.savepoints.unit
    return this.#writer.read(() => {
      // Outside of a transaction a savepoint begins one: the statements read one snapshot.
      begin.run()
      try {
        return this.#statements.view(job, operationId, true)
      } finally {
        release.run()
      }
    })
  }

  list({ scope, jobId, limit = 100 }: UnsettledQuery): Promise<UnsettledOperation[]> {
    return this.#writer.read(() => this.#statements.list(scope ?? null, jobId ?? null, limit))
  }

  prune({ olderThanMs, limit = 1000, sealedOnly = false }: PruneRequest) {
    return this.#writer.submit(() => ({
      pruned: this.#statements.prune(olderThanMs, sealedOnly, limit),
    }))
  }

  /** Withdraws queued calls and refuses later ones; the handle stays open. */
  async close(): Promise<void> {
    this.#closed = true
    this.#writer.close()
  }

  #statementsOf(tx: SqliteDatabase): SqliteFenceStatements {
    const known = this.#joined.get(tx)
    if (known !== undefined) return known
    try {
      const statements = new SqliteFenceStatements(tx, this.#now)
      this.#joined.set(tx, statements)
      return statements
    } catch (error) {
      throw unavailable(error)
    }
  }
}

/** Carries out one unit inside the transaction that is open; asked again after a rollback. */
function run<Db extends SqliteDatabase, A, R>(
  db: Db,
  statements: SqliteFenceStatements,
  unit: Unit<Db, 'sync', A, R>,
  spoiled: Spoiled | undefined,
): Done<A, R> {
  const { job, operationId } = unit
  const step = unit.step(statements.view(job, operationId, unit.census ?? false))
  if (step.fence !== undefined) statements.putFence(job, step.fence)
  const { action } = step
  if (spoiled !== undefined) {
    return { answer: step.answer, effect: { status: 'threw', error: spoiled.error } }
  }
  if (action.kind === 'apply') {
    return { answer: step.answer, effect: runEffect(db, statements, unit, action) }
  }
  if (operationId !== undefined) {
    if (action.kind === 'put') statements.putOperation(job, operationId, action.operation)
    if (action.kind === 'delete') statements.deleteOperation(job, operationId)
  }
  return { answer: step.answer, effect: undefined }
}

/**
 * The record goes in before the effect: should the effect commit by itself, its record is there.
 * @throws TransactionEnded where the savepoint is gone once the effect has run
 */
function runEffect<Db extends SqliteDatabase, A, R>(
  db: Db,
  statements: SqliteFenceStatements,
  { job, operationId, effect }: Unit<Db, 'sync', A, R>,
  action: Extract<Step<A>['action'], { kind: 'apply' }>,
): NonNullable<Done<A, R>['effect']> {
  if (effect === undefined) throw new Error('the unit asks for an effect that it does not have')
  const { generation, fingerprint } = action
  const recorded = action.unrecorded ? undefined : operationId
  const { begin, release, undo } = statements.savepoints.effect
  begin.run()
  if (recorded !== undefined) {
    const record = { status: 'applied', generation, fingerprint, result: undefined } as const
    statements.putOperation(job, recorded, record)
  }
  try {
    const { value, text } = effect(db)
    if (!db.inTransaction) throw new TransactionEnded()
    if (recorded !== undefined && text !== undefined) statements.setResult(job, recorded, text)
    releaseOrEnd(release)
    return { status: 'returned', value }
  } catch (error) {
    if (error instanceof TransactionEnded) throw error
    try {
      undo.run()
      release.run()
    } catch {
      throw new TransactionEnded({ cause: error })
    }
    return { status: 'threw', error }
  }
}

function releaseOrEnd(release: { run(): unknown }): void {
  try {
    release.run()
  } catch (error) {
    throw new TransactionEnded(isOccupied(error) ? { cause: error } : undefined)
  }
}

function lockedOut(error: unknown): StoreUnavailableError {
  return new StoreUnavailableError(
    'SQLite: the database is locked, or has moved on since this transaction first read it:' +
      ' begin it with BEGIN IMMEDIATE, and repeat it',
    { cause: error },
  )
}
