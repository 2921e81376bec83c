/** One unit inside a transaction that is open, be it the store's own or the user's. */

import type { Done, Encoded, Step, Unit } from '../../guard/fence-store.ts'
import { isUndone, type Query, sqlState, unavailable } from './postgres-database.ts'
import type { FenceId, PostgresFenceStatements } from './postgres-fence-statements.ts'

/** An effect has ended the transaction that it ran in, by COMMIT or ROLLBACK. */
export class TransactionEnded extends Error {
  /** `cause` is the effect's own error, where it threw one. */
  constructor(options?: ErrorOptions) {
    super(
      'the effect has ended the transaction of the guard: leave COMMIT and ROLLBACK to it',
      options,
    )
  }
}

/** The transaction that a unit runs in. */
export interface UnitScope<Tx> {
  readonly tx: Tx
  readonly query: Query
  readonly statements: PostgresFenceStatements
  /** Runs the user's callback, limited in time. */
  readonly callback: <R>(effect: () => R | Promise<R>) => Promise<R>
  /** What ends the savepoint of an effect that returned, in one message. */
  readonly release: string
  /** Whether an effect that the database has undone is thrown to be repeated. */
  readonly repeatable: boolean
}

interface CarriedOut<A, R> {
  readonly done: Done<A, R>
  /** Whether there is anything to commit. */
  readonly changed: boolean
}

type Effect<R> = NonNullable<Done<unknown, R>['effect']>
type Apply = Extract<Step<unknown>['action'], { kind: 'apply' }>

/** @throws TransactionEnded; everything else that is thrown is the store's failure */
export async function carryOut<Tx, A, R>(
  scope: UnitScope<Tx>,
  unit: Unit<Tx, 'async', A, R>,
): Promise<CarriedOut<A, R>> {
  const { statements } = scope
  const { job, operationId } = unit
  const id = await statements.lock(job)
  // A later statement than the lock wait: the snapshot of that one may be older than the lock.
  const view = await statements.view(job, operationId, unit.census ?? false)
  const { answer, fence, action } = unit.step(view)
  if (fence !== undefined) await statements.putFence(id, fence)
  if (action.kind === 'apply') {
    return { done: { answer, effect: await runEffect(scope, unit, id, action) }, changed: true }
  }
  if (operationId !== undefined) {
    if (action.kind === 'put') await statements.putOperation(id, operationId, action.operation)
    if (action.kind === 'delete') await statements.deleteOperation(id, operationId)
  }
  const changed = fence !== undefined || action.kind !== 'none'
  return { done: { answer, effect: undefined }, changed }
}

/** The record goes in before the effect: should that one commit by itself, its record is there. */
async function runEffect<Tx, A, R>(
  { tx, query, statements, callback, release, repeatable }: UnitScope<Tx>,
  { effect, operationId }: Unit<Tx, 'async', A, R>,
  id: FenceId,
  { generation, fingerprint, unrecorded }: Apply,
): Promise<Effect<R>> {
  if (effect === undefined) throw new Error('the unit asks for an effect that it does not have')
  const recorded = unrecorded ? undefined : operationId
  await query('SAVEPOINT writefence_effect')
  if (recorded !== undefined) {
    const record = { status: 'applied', generation, fingerprint, result: undefined } as const
    await statements.putOperation(id, recorded, record)
  }
  let encoded: Encoded<R>
  try {
    encoded = await callback(() => effect(tx))
    assertStorable(encoded.text)
  } catch (error) {
    if (repeatable && isUndone(error)) throw error
    return undo(query, error, { cause: error })
  }
  if (recorded !== undefined && encoded.text !== undefined) {
    await statements.setResult(id, recorded, encoded.text)
  }
  try {
    await query(release)
  } catch (error) {
    if (repeatable && isUndone(error)) throw error
    // What the effect left behind: a statement that failed unseen, a deferred constraint.
    if (hasEnded(error)) throw new TransactionEnded()
    return undo(query, error)
  }
  return { status: 'returned', value: encoded.value }
}

/** Takes back the effect and its record, not the fence. */
async function undo<R>(query: Query, error: unknown, ended?: ErrorOptions): Promise<Effect<R>> {
  try {
    await query('ROLLBACK TO SAVEPOINT writefence_effect')
    await query('RELEASE SAVEPOINT writefence_effect')
  } catch (failure) {
    if (ended !== undefined && hasEnded(failure)) throw new TransactionEnded(ended)
    throw unavailable(error)
  }
  return { status: 'threw', error }
}

/** 25P01 no_active_sql_transaction, 3B001 invalid_savepoint_specification */
function hasEnded(error: unknown): boolean {
  const state = sqlState(error)
  return state === '25P01' || state === '3B001'
}

function assertStorable(text: string | undefined): void {
  if (text?.includes('\0')) {
    throw new TypeError('PostgreSQL cannot keep the result: its text has a NUL character')
  }
}
