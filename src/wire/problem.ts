/**
 * Refusals as problem details (RFC 9457), both ways. This is the one place that gives a code its
 * HTTP status.
 */

import {
  type RefusalCode,
  type RequestRefusedError,
  requestCodes,
  StoreUnavailableError,
  verdictCodes,
  WriteRefusedError,
} from '../errors.ts'
import { generationProblem } from '../token.ts'
import { FENCING_VERDICT, formatFencingVerdict } from './headers.ts'

/** A code that a problem answer can carry. */
export type ProblemCode = RefusalCode | 'store_unavailable'
/** An error that is answered as a problem. */
export type ProblemError = WriteRefusedError | RequestRefusedError | StoreUnavailableError

const PROBLEMS: Readonly<Record<ProblemCode, readonly [status: number, title: string]>> = {
  token_required: [428, 'Fencing token required'],
  token_malformed: [400, 'Malformed fencing token'],
  operation_id_required: [400, 'Operation id required'],
  operation_id_malformed: [400, 'Malformed operation id'],
  request_malformed: [400, 'Malformed request'],
  token_rejected: [403, 'Fencing token rejected'],
  forbidden: [403, 'Forbidden'],
  stale: [412, 'Stale generation'],
  sealed: [412, 'Job sealed'],
  conflict: [409, 'Two holders of one generation'],
  mismatch: [422, 'Operation id used for another request'],
  in_flight: [409, 'Operation in flight'],
  outcome_unknown: [409, 'Outcome unknown'],
  store_unavailable: [503, 'Store unavailable'],
}

export const PROBLEM_JSON = 'application/problem+json'
// An operation in flight mostly ends long before its deadline, which is all that the guard knows.
const LONGEST_WAIT_S = 5

/** The body of a problem answer. Never another holder's leaseId. */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail?: string | undefined
  readonly code: ProblemCode
  readonly retryable: boolean
  readonly jobId?: string | undefined
  readonly generation?: number | undefined
  readonly highestGeneration?: number | undefined
  readonly operationApplied?: boolean | undefined
}

export function problemStatus(code: ProblemCode): number {
  return PROBLEMS[code][0]
}

/** The body that tells of an error. The cause, and what a driver said, stay on this side. */
export function problemOf(error: ProblemError): Problem {
  const { retryable } = error
  const code: ProblemCode = error.code
  const [status, title] = PROBLEMS[code]
  // The package's page explains each code; the address identifies, it need not be followed.
  const named = { type: `https://www.npmjs.com/package/writefence#${code}`, title, status }
  if (error instanceof StoreUnavailableError) return { ...named, code, retryable }
  const { message: detail, jobId, generation } = error
  const known = { ...named, detail, code, retryable, jobId, generation }
  if (!(error instanceof WriteRefusedError)) return known
  const { highestGeneration, operationApplied } = error
  return { ...known, highestGeneration, operationApplied }
}

/**
 * The headers that belong on the answer whoever writes its body: `Cache-Control: no-store`, the
 * verdict, and `Retry-After` in whole seconds, at least 1 and at most 5.
 */
export function problemHeaders(error: ProblemError): Record<string, string> {
  const wait = retryAfterSeconds(error)
  return {
    'Cache-Control': 'no-store',
    [FENCING_VERDICT]: formatFencingVerdict({
      word: error.code,
      highestGeneration: 'highestGeneration' in error ? error.highestGeneration : undefined,
    }),
    ...(wait === undefined ? {} : { 'Retry-After': String(wait) }),
  }
}

/**
 * Reads a problem answer of a guard or service: `undefined` where it is none, whatever its status.
 * Members that are not what they should be are left out.
 */
export function parseProblem(contentType: string | null, body: string): Problem | undefined {
  if (contentType?.split(';')[0]?.trim().toLowerCase() !== PROBLEM_JSON) return undefined
  const message = parseObject(body)
  const { code, detail, jobId, generation, highestGeneration, operationApplied } = message
  if (!isProblemCode(code)) return undefined
  const [status, title] = PROBLEMS[code]
  return {
    type: typeof message.type === 'string' ? message.type : 'about:blank',
    title: typeof message.title === 'string' ? message.title : title,
    status,
    detail: typeof detail === 'string' ? detail : undefined,
    code,
    retryable: message.retryable === true,
    jobId: typeof jobId === 'string' ? jobId : undefined,
    generation: generationOf(generation),
    highestGeneration: generationOf(highestGeneration),
    operationApplied: typeof operationApplied === 'boolean' ? operationApplied : undefined,
  }
}

/** The error that a problem tells of, at the caller who sent the token. */
export function problemError(
  problem: Problem,
  sent: {
    readonly jobId: string
    readonly generation: number
    readonly operationId?: string | undefined
  },
  retryAfterMs?: number,
): WriteRefusedError | StoreUnavailableError {
  const { code, retryable, highestGeneration, operationApplied, title } = problem
  if (code === 'store_unavailable') {
    return new StoreUnavailableError(`the destination answered: ${title}`, { retryable })
  }
  const { jobId, generation, operationId } = sent
  const known = { jobId, generation, operationId, highestGeneration, operationApplied }
  return new WriteRefusedError(code, { ...known, retryAfterMs })
}

function retryAfterSeconds(error: ProblemError): number | undefined {
  if (error.code === 'store_unavailable') return 1
  if (error.code !== 'in_flight') return undefined
  const wait = 'retryAfterMs' in error ? (error.retryAfterMs ?? 0) : 0
  return Math.min(Math.max(Math.ceil(wait / 1000), 1), LONGEST_WAIT_S)
}

/** Whether the word is a code that a problem answer can carry. */
export function isProblemCode(code: unknown): code is ProblemCode {
  const codes: readonly unknown[] = [...verdictCodes, ...requestCodes, 'store_unavailable']
  return codes.includes(code)
}

function generationOf(value: unknown): number | undefined {
  return generationProblem(value) === undefined ? (value as number) : undefined
}

function parseObject(body: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}
