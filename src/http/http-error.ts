/** Errors on their way to an answer. */

import {
  RequestRefusedError,
  StoreUnavailableError,
  WritefenceError,
  WriteRefusedError,
} from '../errors.ts'
import {
  PROBLEM_JSON,
  type ProblemError,
  problemHeaders,
  problemOf,
  problemStatus,
} from '../wire/problem.ts'
import type { Answer } from './exchange.ts'

/**
 * Gives an error of the guard the `status`, `statusCode` and `headers` that the default error
 * handlers of Express and others answer with. Any other error is returned as it is.
 */
export function withHttp<E>(error: E): E {
  if (!isProblem(error)) return error
  const status = problemStatus(error.code)
  return Object.assign(error, { status, statusCode: status, headers: problemHeaders(error) })
}

/** The problem answer that an error makes, or `undefined` where it is none of the guard's. */
export function problemAnswer(error: unknown): Answer | undefined {
  if (!isProblem(error)) return undefined
  const problem = problemOf(error)
  return {
    status: problem.status,
    headers: { ...problemHeaders(error), 'Content-Type': PROBLEM_JSON },
    body: JSON.stringify(problem),
  }
}

/**
 * Asks a hook of the user's whether something is allowed: only `true` allows. One that throws has
 * not allowed it either; an error with a status of its own (a key server that is down) is passed
 * on, so that it is not mistaken for a final refusal.
 * @throws what `refusal` makes
 */
export async function mustAllow(
  ask: () => unknown,
  refusal: (cause?: unknown) => RequestRefusedError,
): Promise<void> {
  let allowed: unknown
  try {
    allowed = await ask()
  } catch (error) {
    throw hasStatus(error) || error instanceof WritefenceError ? error : refusal(error)
  }
  if (allowed !== true) throw refusal()
}

export function isProblem(error: unknown): error is ProblemError {
  return (
    error instanceof WriteRefusedError ||
    error instanceof RequestRefusedError ||
    error instanceof StoreUnavailableError
  )
}

function hasStatus(error: unknown): boolean {
  const { status, statusCode } = Object(error) as { status?: unknown; statusCode?: unknown }
  return typeof (status ?? statusCode) === 'number'
}
