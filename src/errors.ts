/**
 * One base, one union of codes. Which HTTP status a code gets is said in `wire/`, not here.
 *
 * Three channels that never mix: a refused write throws {@link WriteRefusedError}; a world that is
 * broken throws {@link StoreUnavailableError}; misuse throws `TypeError` or `RangeError`.
 */

/** The verdicts that refuse a write, with whether the same request may succeed later. */
const REFUSALS = {
  stale: { retryable: false, says: 'a newer generation of the job has been seen: stop working' },
  conflict: {
    retryable: false,
    says:
      'another lease holds this generation: two lease stores, or one restored from a backup' +
      ' (a token without its lease counts as another holder)',
  },
  mismatch: { retryable: false, says: 'the operation id was used for a different request' },
  in_flight: { retryable: true, says: 'the operation, or an older one, is still running' },
  outcome_unknown: {
    retryable: false,
    says: 'whether the operation, or an older one, took place is not known: find out, then resolve',
  },
  sealed: { retryable: false, says: 'the job is sealed: complete it, or reopen the fence' },
} as const

/** The refusals of a request that never reached a verdict. */
const REQUEST_REFUSALS = {
  token_required: 'send a Fencing-Token, such as 7;job="import-42";lease="2f1c"',
  token_malformed: 'the Fencing-Token is not in canonical form',
  operation_id_required: 'send an Idempotency-Key',
  operation_id_malformed: 'the Idempotency-Key is not a valid operation id',
  request_malformed: 'the request cannot be read',
  token_rejected: 'the token is not valid for this destination or job',
  forbidden: 'not allowed',
} as const

/** The code of a verdict that refuses. */
export type VerdictCode = keyof typeof REFUSALS
/** The code of a request that was refused before any verdict. */
export type RequestCode = keyof typeof REQUEST_REFUSALS
/** Every code that a refused request can carry. */
export type RefusalCode = VerdictCode | RequestCode
/** Every `code` of every error of this package. */
export type ErrorCode =
  | RefusalCode
  | 'store_unavailable'
  | 'lease_lost'
  | 'attempt_superseded'
  | 'not_applied'

export const verdictCodes = Object.keys(REFUSALS) as readonly VerdictCode[]
export const requestCodes = Object.keys(REQUEST_REFUSALS) as readonly RequestCode[]

/** Whether a refusal with this code may turn into a success if the same request is sent again. */
export function isRetryable(code: RefusalCode): boolean {
  return code in REFUSALS && REFUSALS[code as VerdictCode].retryable
}

/** The base of every error of this package; `code` tells the classes apart. */
export abstract class WritefenceError extends Error {
  abstract readonly code: ErrorCode
  /** Whether the same call may succeed later. */
  abstract readonly retryable: boolean
  override get name(): string {
    return this.constructor.name
  }
}

/** What is known of a refused write. Never another holder's leaseId. */
export interface Refusal {
  readonly jobId: string
  readonly generation: number
  readonly operationId?: string | undefined
  /** The highest generation that the destination has seen, where it told. */
  readonly highestGeneration?: number | undefined
  /** Whether the refused operation had been applied before; absent where that is not known. */
  readonly operationApplied?: boolean | undefined
  /** How long to wait before the next try, in milliseconds; only where `retryable`. */
  readonly retryAfterMs?: number | undefined
}

/**
 * The write was refused. Nothing of it took place, except that `outcome_unknown` says that it (or
 * an older operation of the job) may have, and that `operationApplied` says that it did before.
 */
export class WriteRefusedError extends WritefenceError implements Refusal {
  readonly code: RefusalCode
  readonly retryable: boolean
  readonly jobId: string
  readonly generation: number
  readonly operationId?: string | undefined
  readonly highestGeneration?: number | undefined
  readonly operationApplied?: boolean | undefined
  readonly retryAfterMs?: number | undefined

  constructor(code: RefusalCode, refusal: Refusal, options?: ErrorOptions) {
    super(refusalMessage(code, refusal), options)
    this.code = code
    this.retryable = isRetryable(code)
    this.jobId = refusal.jobId
    this.generation = refusal.generation
    this.operationId = refusal.operationId
    this.highestGeneration = refusal.highestGeneration
    this.operationApplied = refusal.operationApplied
    this.retryAfterMs = refusal.retryAfterMs
  }
}

/** The request was refused at the door, before any verdict: nothing was read or changed. */
export class RequestRefusedError extends WritefenceError {
  readonly code: RequestCode
  readonly retryable = false
  readonly jobId?: string | undefined
  readonly generation?: number | undefined

  constructor(
    code: RequestCode,
    detail?: string,
    known: { jobId?: string | undefined; generation?: number | undefined } = {},
    options?: ErrorOptions,
  ) {
    super(`${REQUEST_REFUSALS[code]}${detail === undefined ? '' : `: ${detail}`}`, options)
    this.code = code
    this.jobId = known.jobId
    this.generation = known.generation
  }
}

/**
 * The store did not answer in time, is closed, or failed; `cause` has the driver's error.
 *
 * From a write it means *not known*: the write may have been committed although the answer was
 * lost. It is `retryable` where repeating is harmless, that is, with an operation id.
 */
export class StoreUnavailableError extends WritefenceError {
  readonly code = 'store_unavailable'
  readonly retryable: boolean

  constructor(message: string, options: ErrorOptions & { retryable?: boolean } = {}) {
    super(message, options)
    this.retryable = options.retryable ?? true
  }
}

/** Why a lease is over for its holder. */
export type LostReason =
  | 'expired'
  | 'unreachable'
  | 'superseded'
  | 'fenced'
  | 'released'
  | 'completed'
  | 'unknown_job'

/** The lease is over. Final: no later answer of the store revives it. */
export class LeaseLostError extends WritefenceError {
  readonly code = 'lease_lost'
  readonly retryable = false
  readonly reason: LostReason
  readonly jobId: string
  readonly generation: number

  constructor(
    reason: LostReason,
    lease: { jobId: string; generation: number },
    options?: ErrorOptions,
  ) {
    super(
      `lost the lease on ${quote(lease.jobId)} at generation ${lease.generation}: ${reason}`,
      options,
    )
    this.reason = reason
    this.jobId = lease.jobId
    this.generation = lease.generation
  }
}

/**
 * An attempt came to settle an operation that was resolved, or taken by another attempt, in the
 * meantime. Its effect may have taken place beside the other's: an alarm.
 */
export class AttemptSupersededError extends WritefenceError {
  readonly code = 'attempt_superseded'
  readonly retryable = false
  readonly jobId: string
  readonly operationId: string

  constructor(operation: { jobId: string; operationId: string }, options?: ErrorOptions) {
    super(
      `another attempt, or an operator, has settled operation ${quote(operation.operationId)}` +
        ` of ${quote(operation.jobId)}: check the effect for duplicates`,
      options,
    )
    this.jobId = operation.jobId
    this.operationId = operation.operationId
  }
}

/**
 * Thrown by the user's effect as proof that this attempt did not take place: it may be tried again.
 * Of an earlier attempt, where this one is a rerun (`onUnknown: 'rerun'`), it proves nothing.
 */
export class NotAppliedError extends WritefenceError {
  readonly code = 'not_applied'
  readonly retryable = true

  constructor(message = 'the effect did not take place', options?: ErrorOptions) {
    super(message, options)
  }
}

function refusalMessage(code: RefusalCode, refusal: Refusal): string {
  const says =
    code in REFUSALS ? REFUSALS[code as VerdictCode].says : REQUEST_REFUSALS[code as RequestCode]
  const highest =
    refusal.highestGeneration === undefined ? '' : `, highest seen ${refusal.highestGeneration}`
  const { jobId, generation, operationId } = refusal
  const operation = operationId === undefined ? '' : `operation ${quote(operationId)}, `
  return `${code}: ${says} (job ${quote(jobId)}, ${operation}generation ${generation}${highest})`
}

function quote(id: string): string {
  return JSON.stringify(id)
}
