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

/** The transaction that a unit runs in, behind a savepoint. */
export interface UnitScope<Tx> {
  readonly tx: Tx
  /** Its name, which no other savepoint of the transaction has: it would take its place. */
  readonly savepoint: string
  readonly query: Query
  readonly statements: PostgresFenceStatements
  /** Runs the user's callback, limited in time. */
  readonly callback: <R>(effect: () => R | Promise<R>) => Promise<R>
  /** Ends the savepoint, and the transaction if it is the store's, in one message. */
  readonly end: (changed: boolean) => Promise<unknown>
  /** Whether an effect that the database has undone is thrown to be repeated. */
  readonly repeatable: boolean
}

/** An effect that is left out: it has failed before, and only its fence is to be kept. */
export interface Spoiled {
  readonly error: unknown
}

type Apply = Extract<Step<unknown>['action'], { kind: 'apply' }>

/**
 * Carries the unit out, and ends its savepoint. Where the effect fails, everything is undone and
 * the unit carried out again without it, since the fence has to outlive it. A savepoint of the
 * effect's own would save that, at the price of every write that succeeds: one message more, and a
 * row that is locked by one subtransaction and updated by another has to have a multixact.
 * @param spoiled given where the effect has failed before
 * @throws TransactionEnded; everything else that is thrown is the store's failure
 */
export async function carryOut<Tx, A, R>(
  scope: UnitScope<Tx>,
  unit: Unit<Tx, 'async', A, R>,
  spoiled?: Spoiled,
): Promise<Done<A, R>> {
  try {
    return await run(scope, unit, spoiled)
  } catch (error) {
    if (!(error instanceof EffectFailed)) throw error
    await undo(scope, error)
    return run(scope, unit, { error: error.cause })
  }
}

async function run<Tx, A, R>(
  scope: UnitScope<Tx>,
  unit: Unit<Tx, 'async', A, R>,
  spoiled: Spoiled | undefined,
): Promise<Done<A, R>> {
  const { statements, end } = scope
  const { job, operationId } = unit
  const id = await statements.lock(job)
  // A later statement than the lock wait: the snapshot of that one may be older than the lock.
  const view = await statements.view(job, operationId, unit.census ?? false)
  const { answer, fence, action } = unit.step(view)
  if (fence !== undefined) await statements.putFence(id, fence)
  if (spoiled !== undefined) {
    await end(fence !== undefined)
    return { answer, effect: { status: 'threw', error: spoiled.error } }
  }
  if (action.kind === 'apply') {
    return { answer, effect: { status: 'returned', value: await apply(scope, unit, id, action) } }
  }
  if (operationId !== undefined) {
    if (action.kind === 'put') await statements.putOperation(id, operationId, action.operation)
    if (action.kind === 'delete') await statements.deleteOperation(id, operationId)
  }
  await end(fence !== undefined || action.kind !== 'none')
  return { answer, effect: undefined }
}

/** The record goes in before the effect: should that one commit by itself, its record is there. */
async function apply<Tx, A, R>(
  { tx, statements, callback, end, repeatable }: UnitScope<Tx>,
  { effect, operationId }: Unit<Tx, 'async', A, R>,
  id: FenceId,
  { generation, fingerprint, unrecorded }: Apply,
): Promise<R> {
  if (effect === undefined) throw new Error('the unit asks for an effect that it does not have')
  const recorded = unrecorded ? undefined : operationId
  if (recorded !== undefined) {
    const record = { status: 'applied', generation, fingerprint, result: undefined } as const
    await statements.putOperation(id, recorded, record)
  }
  let encoded: Encoded<R>
  try {
    encoded = await callback(() => effect(tx))
    assertStorable(encoded.text)
  } catch (error) {
    throw repeatable && isUndone(error) ? error : new EffectFailed(error)
  }
  if (recorded !== undefined && encoded.text !== undefined) {
    await statements.setResult(id, recorded, encoded.text)
  }
  try {
    await end(true)
  } catch (error) {
    if (hasEnded(error)) throw new TransactionEnded()
    // What the effect left behind: a statement that failed unseen, a deferred constraint.
    throw repeatable && isUndone(error) ? error : new EffectFailed(error)
  }
  return encoded.value
}

class EffectFailed extends Error {
  constructor(cause: unknown) {
    super('the effect has failed', { cause })
  }
}

/** Takes back all of the unit. A connection that cannot is lost, and the effect's error with it. */
async function undo<Tx>(
  { query, savepoint }: UnitScope<Tx>,
  { cause }: EffectFailed,
): Promise<void> {
  try {
    await query(`ROLLBACK TO SAVEPOINT ${savepoint}`)
  } catch (failure) {
    throw hasEnded(failure) ? new TransactionEnded({ cause }) : unavailable(cause)
  }
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
