/** Carries out what a unit decides about a job, once the job is locked and read. */

import type { Action, Done, JobView, Step, Unit } from '../../guard/fence-store.ts'
import type { Turns } from '../turns.ts'
import { isSavepointGone, isUndone, type MysqlConnection, unavailable } from './mysql-database.ts'
import type { MysqlFenceStatements } from './mysql-fence-statements.ts'
import type { MysqlServer, MysqlSession } from './mysql-session.ts'

/** An effect has cost the whole transaction: the server undid it, or the effect ended it itself. */
export class EffectLost extends Error {
  /** Whether it was the effect that ended it, so that running it again can only do so again. */
  readonly ended: boolean
  /** What the effect's caller is told once it is not run again. */
  readonly error: unknown

  constructor(ended: boolean, error: unknown) {
    super('the effect has cost the transaction', { cause: error })
    this.ended = ended
    this.error = error
  }
}

export interface CarriedOut<A, R> {
  readonly done: Done<A, R>
  /** Whether there is something to keep: a fence, or what an effect did without one. */
  readonly lasting: boolean
}

type EffectDone<R> = NonNullable<Done<unknown, R>['effect']>

/** How a unit is to be carried out. */
export interface Terms {
  readonly server: MysqlServer
  /** How long the effect may run; absent in a transaction of the user's own. */
  readonly effectTimeoutMs?: number | undefined
  /** The effect is not run but answered with this: it has cost a transaction before. */
  readonly leftOut?: EffectLost | undefined
}

export class MysqlUnitRunner<Connection extends MysqlConnection> {
  readonly #statements: MysqlFenceStatements
  readonly #turns: Turns

  constructor(statements: MysqlFenceStatements, turns: Turns) {
    this.#statements = statements
    this.#turns = turns
  }

  /**
   * Puts the fence first, so that it stands whatever becomes of the effect.
   * @throws EffectLost where the effect has cost the transaction
   */
  async carryOut<A, R>(
    session: MysqlSession<Connection>,
    unit: Unit<Connection, 'async', A, R>,
    view: JobView,
    terms: Terms,
  ): Promise<CarriedOut<A, R>> {
    const { answer, fence, action }: Step<A> = unit.step(view)
    if (fence !== undefined) await this.#statements.putFence(session, unit.job, fence)
    const fenced = (fence ?? view.fence) !== undefined
    const ended = (effect: EffectDone<R> | undefined) => ({
      done: { answer, effect },
      lasting: fenced || effect?.status === 'returned',
    })
    if (terms.leftOut !== undefined) return ended({ status: 'threw', error: terms.leftOut.error })
    const known = view.operation !== undefined
    if (action.kind === 'apply') {
      return ended(await this.#runEffect(session, unit, action, known, terms))
    }
    const { job, operationId } = unit
    if (operationId !== undefined) {
      if (action.kind === 'put') {
        const { operation } = action
        if (operation.status === 'applied') assertFits(operation.result, terms.server)
        await this.#statements.putOperation(session, job, operationId, operation, known)
      }
      if (action.kind === 'delete') {
        await this.#statements.deleteOperation(session, job, operationId)
      }
    }
    return ended(undefined)
  }

  /** The record goes in before the effect: should that commit by itself, its record is there. */
  async #runEffect<A, R>(
    session: MysqlSession<Connection>,
    { job, operationId, effect }: Unit<Connection, 'async', A, R>,
    { generation, fingerprint, unrecorded }: Extract<Action, { kind: 'apply' }>,
    known: boolean,
    terms: Terms,
  ): Promise<EffectDone<R>> {
    if (effect === undefined) throw new Error('the unit asks for an effect that it does not have')
    const recorded = unrecorded ? undefined : operationId
    const { connection } = session
    const savepoint = savepointOf('effect', this.#turns.depth(connection))
    await session.savepoint(savepoint)
    if (recorded !== undefined) {
      const record = { status: 'applied', generation, fingerprint, result: undefined } as const
      await this.#statements.putOperation(session, job, recorded, record, known)
    }
    const run = () => this.#turns.inside(connection, () => effect(connection))
    let encoded: Awaited<ReturnType<typeof run>>
    try {
      encoded = await (terms.effectTimeoutMs === undefined
        ? run()
        : session.bounded(terms.effectTimeoutMs, 'the effect', run))
      assertFits(encoded.text, terms.server)
    } catch (error) {
      await undo(session, savepoint, error)
      return { status: 'threw', error }
    }
    await releaseOrLose(session, savepoint)
    const { value, text } = encoded
    if (recorded !== undefined && text !== undefined) {
      await this.#statements.setResult(session, job, recorded, text)
    }
    return { status: 'returned', value }
  }
}

/**
 * Another name for each level of effects within effects: one that is set again inside its own
 * savepoint would take its place. The same one each time, since servers keep account of statements.
 */
export function savepointOf(what: 'unit' | 'effect', depth: number): string {
  return `writefence_${what}_${depth}`
}

/** @throws EffectLost where nothing is left to undo, StoreUnavailableError where it cannot tell */
async function undo(session: MysqlSession, savepoint: string, error: unknown): Promise<void> {
  if (!session.usable) throw error
  try {
    await session.undoTo(savepoint)
  } catch (failure) {
    if (!isSavepointGone(failure)) throw unavailable(error)
    throw isUndone(error) ? new EffectLost(false, unavailable(error)) : new EffectLost(true, error)
  }
}

async function releaseOrLose(session: MysqlSession, savepoint: string): Promise<void> {
  try {
    await session.release(savepoint)
  } catch (failure) {
    if (!isSavepointGone(failure)) throw failure
    // It may have swallowed the error of a deadlock, which had undone the fence as well.
    const misuse = 'the effect has ended the transaction of the guard, or gone on after it ended:'
    throw new EffectLost(
      true,
      new TypeError(`${misuse} leave COMMIT and ROLLBACK to the guard, and let errors through`),
    )
  }
}

/**
 * The longest statement bounds what can be recorded, written as hexadecimal digits.
 * @throws RangeError where the result is longer
 */
function assertFits(result: string | undefined, { maxPacket }: MysqlServer): void {
  if (result === undefined || Buffer.byteLength(result) * 2 + HEAD < maxPacket) return
  throw new RangeError(
    `the result has ${Buffer.byteLength(result)} bytes, more than half of max_allowed_packet` +
      ` (${maxPacket}): return less, or raise it on the server`,
  )
}

// What else is in the statement: three ids of 1020 bytes as digits, and the words around them.
const HEAD = 16_384
