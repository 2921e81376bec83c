/** A destination of a simulated world: the real guard behind a desk. */

import {
  AttemptSupersededError,
  type EffectOptions,
  type FenceState,
  NotAppliedError,
  StoreUnavailableError,
  type UnknownOperation,
  type WriteGuard,
  WriteRefusedError,
} from 'writefence'
import type { DestinationDatabase } from './databases.ts'
import type { Reply, Request } from './messages.ts'

export type Guard = WriteGuard<unknown, 'async'>

/** What can be found out about an operation. */
export type Truth =
  | { readonly status: 'applied'; readonly result: unknown }
  | { readonly status: 'not_applied' }
  | { readonly status: 'unknown' }

/** The system behind the destination, which `effect` acts on. */
export interface ThirdSystem {
  /** Asks it to do something: resolves, or throws, when the world says so. */
  ask(call: string, request: Request, operationId: string): Promise<unknown>
  truth(request: Request, operationId: string): Truth
}

export interface Desk {
  readonly guard: Guard
  readonly database: DestinationDatabase
  readonly third: ThirdSystem
  readonly effects: Pick<EffectOptions<unknown>, 'afterOverdue' | 'deadlineMs'> & {
    readonly onUnknown?: 'refuse' | 'rerun' | 'find_out' | undefined
  }
}

/** Thrown by an effect that failed for a reason of its own. */
export class EffectFailed extends Error {}

/** @throws whatever is no answer that the guard documents: a bug */
export async function serveWrite(desk: Desk, call: string, request: Request): Promise<Reply> {
  try {
    return await ask(desk, call, request)
  } catch (error) {
    const raw = { error }
    if (error instanceof WriteRefusedError) {
      const { code, retryable, highestGeneration, operationApplied } = error
      return { outcome: 'refused', code, retryable, highestGeneration, operationApplied, raw }
    }
    // Nothing of a write that threw is left; of an effect elsewhere only if it proves that.
    const nothing = error instanceof NotAppliedError || request.verb === 'write'
    if (error instanceof EffectFailed || error instanceof NotAppliedError) {
      return { outcome: nothing ? 'failed' : 'unknown', raw }
    }
    if (error instanceof StoreUnavailableError || error instanceof AttemptSupersededError) {
      return { outcome: 'unknown', raw }
    }
    throw error
  }
}

async function ask(desk: Desk, call: string, request: Request): Promise<Reply> {
  const { guard } = desk
  const { verb, jobId, scope = '', generation = 0, leaseId, operationId } = request
  const token = { jobId, generation, leaseId }
  const intent = { token, scope, operationId }
  switch (verb) {
    case 'write':
      return written(await guard.write(intent, (tx) => writeDown(desk.database, tx, call, request)))
    case 'effect':
      return written(
        await guard.effect(
          intent,
          (context) => desk.third.ask(call, request, context.operationId),
          effectOptions(desk, request),
        ),
      )
    case 'advance':
      return stated(await guard.advance(token, scope))
    case 'seal':
      return stated(await guard.seal(token, scope))
    case 'reopen': {
      const state = await guard.reopen(jobId, scope)
      return state === undefined ? { outcome: 'done' } : stated(state)
    }
    case 'resolve':
      return resolve(desk, request)
    default:
      throw new TypeError(`a destination does not know ${verb}`)
  }
}

/** At once where the database is synchronous. */
function writeDown(database: DestinationDatabase, tx: unknown, call: string, request: Request) {
  const { scope = '', jobId, generation = 0, leaseId, operationId, throws } = request
  const done = () => {
    if (throws) throw new EffectFailed('after it had written')
    return { by: call }
  }
  const writing = database.write(tx, { scope, jobId, generation, leaseId, operationId, call })
  return writing instanceof Promise ? writing.then(done) : done()
}

function effectOptions({ effects, third }: Desk, request: Request): EffectOptions<unknown> {
  const { onUnknown, ...options } = effects
  const find = async ({ operationId }: UnknownOperation) => third.truth(request, operationId)
  return { ...options, onUnknown: onUnknown === 'find_out' ? find : onUnknown }
}

/** An operator who says only what is certain. */
async function resolve({ guard, third }: Desk, request: Request): Promise<Reply> {
  const { jobId, scope = '', operationId = '' } = request
  const truth = third.truth(request, operationId)
  if (truth.status === 'unknown') return { outcome: 'unknown' }
  await guard.resolve({ jobId, scope, operationId }, truth)
  return { outcome: 'done' }
}

interface Written {
  readonly status: 'applied' | 'replayed'
  readonly result: unknown
  readonly appliedGeneration: number
  readonly highestGeneration: number
}

function written({ status: outcome, ...known }: Written): Reply {
  return { outcome, ...known, raw: { value: { status: outcome, ...known } } }
}

function stated(state: FenceState): Reply {
  const { highestGeneration, older } = state
  const left = older.inFlight + older.overdue
  return { outcome: 'done', highestGeneration, older: left, raw: { value: state } }
}
