/**
 * What a fencing token is, and what its parts may be.
 *
 * Every surface (guard, lease stores, headers, routes) takes its identifiers through this file,
 * so that no two of them can disagree on whether an id is good. Ids are compared code unit by
 * code unit: never normalised, folded or trimmed.
 */

/**
 * Proof of which lease a writer acts under.
 *
 * `generation` rises by one on each new claim of the job, is never reused and never reset.
 * `leaseId` tells two holders of one generation apart (a restored backup, two lease stores).
 * It is a secret between the holder and the destination. A token from an issuer that has no such
 * id leaves it out, and absent equals only absent.
 */
export interface FencingToken {
  readonly jobId: string
  readonly generation: number
  readonly leaseId?: string | undefined
}

/** The largest generation: the top of an RFC 9651 Integer (section 3.3.1), exact as a number. */
export const MAX_GENERATION = 999_999_999_999_999

/** The longest identifier, in Unicode code points. */
export const MAX_ID_LENGTH = 255

// An id of 255 code points has at most 510 code units: refuse longer text before walking it.
const MAX_ID_UNITS = 2 * MAX_ID_LENGTH
const CONTROL = /\p{Cc}/u

/** Says what is wrong with an identifier, or `undefined` where nothing is. */
export function idProblem(value: unknown): string | undefined {
  if (typeof value !== 'string') return `must be a string, not ${describe(value)}`
  if (value.length === 0) return 'must not be empty'
  return textProblem(value)
}

/** Like {@link idProblem} for a scope, which may be the empty string. */
export function scopeProblem(value: unknown): string | undefined {
  if (typeof value !== 'string') return `must be a string, not ${describe(value)}`
  return textProblem(value)
}

/** Says what is wrong with a generation, or `undefined` where nothing is. Nothing is rounded. */
export function generationProblem(value: unknown): string | undefined {
  if (typeof value !== 'number') return `must be a number, not ${describe(value)}`
  if (!Number.isInteger(value)) return `must be an integer, not ${value}`
  if (value < 1 || value > MAX_GENERATION) return `must be from 1 to ${MAX_GENERATION}`
  return undefined
}

/**
 * Returns the identifier, checked.
 * @throws TypeError where it is no string, RangeError where its text is not allowed; both name it
 */
export function checkId(name: string, value: unknown): string {
  return checked(name, value, idProblem(value), typeof value === 'string')
}

/** Like {@link checkId} for a scope; absent is `''`. */
export function checkScope(value: unknown): string {
  if (value === undefined) return ''
  return checked('scope', value, scopeProblem(value), typeof value === 'string')
}

/**
 * Returns the generation, checked.
 * @throws TypeError where it is no number, RangeError where it is no integer of 1 to 10^15 - 1
 */
export function checkGeneration(name: string, value: unknown): number {
  return checked(name, value, generationProblem(value), typeof value === 'number')
}

/**
 * Returns a token of exactly the three known fields, checked and copied: what the caller changes
 * later (or a getter that answers differently the second time) cannot reach a decision.
 * @throws TypeError or RangeError naming the field
 */
export function checkToken(value: unknown): FencingToken {
  if (typeof value !== 'object' || value === null) {
    throw new TypeError(`token must be an object { jobId, generation, leaseId? }`)
  }
  const { jobId, generation, leaseId } = value as Record<keyof FencingToken, unknown>
  return {
    jobId: checkId('jobId', jobId),
    generation: checkGeneration('generation', generation),
    leaseId: leaseId === undefined ? undefined : checkId('leaseId', leaseId),
  }
}

function textProblem(text: string): string | undefined {
  // Code points are counted only where there can be too many of them.
  const tooLong =
    text.length > MAX_ID_LENGTH && (text.length > MAX_ID_UNITS || [...text].length > MAX_ID_LENGTH)
  if (tooLong) return `must have at most ${MAX_ID_LENGTH} code points`
  if (!text.isWellFormed()) return 'must be well-formed Unicode (it has a lone surrogate)'
  if (CONTROL.test(text)) return 'must not have control characters'
  return undefined
}

function checked<T>(name: string, value: unknown, problem: string | undefined, typed: boolean): T {
  if (problem === undefined) return value as T
  throw new (typed ? RangeError : TypeError)(`${name} ${problem}`)
}

function describe(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value
}
