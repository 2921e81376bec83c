/**
 * How a token, an operation id and a verdict are spelled in headers (RFC 9651 structured fields).
 *
 * Canonical only: text that does not serialise back to itself is malformed. Two spellings of one
 * value are two chances for a proxy, a log and a guard to disagree on what was sent.
 */

import { DisplayString, type Item, parseItem, serializeItem, Token } from 'structured-headers'
import { type RefusalCode, RequestRefusedError } from '../errors.ts'
import { checkId, checkToken, type FencingToken, generationProblem, idProblem } from '../token.ts'

export const FENCING_TOKEN = 'Fencing-Token'
export const IDEMPOTENCY_KEY = 'Idempotency-Key'
export const FENCING_VERDICT = 'Fencing-Verdict'
export const IDEMPOTENT_REPLAYED = 'Idempotent-Replayed'

/**
 * What a browser must be allowed to send (`Access-Control-Allow-Headers`) and to read
 * (`Access-Control-Expose-Headers`) where a guarded route is called across origins.
 */
export const corsHeaders = {
  allow: [FENCING_TOKEN, IDEMPOTENCY_KEY],
  expose: [FENCING_VERDICT, IDEMPOTENT_REPLAYED, 'Retry-After'],
} as const

/** A token as it was sent: the job may be left out where the route gives it. */
export interface SentToken {
  readonly generation: number
  readonly jobId?: string | undefined
  readonly leaseId?: string | undefined
}

/** The word of a `Fencing-Verdict`. `passed`: the fence let the request in, nothing was written. */
export type VerdictWord = 'applied' | 'replayed' | 'passed' | RefusalCode | 'store_unavailable'

export interface FencingVerdict<Word extends string = VerdictWord> {
  readonly word: Word
  /** The highest generation that the destination has seen for the job, where it says so. */
  readonly highestGeneration?: number | undefined
}

/**
 * `7;job="import-42";lease="2f1c"`: an Integer, the ids as Strings, or Display Strings where they
 * are not ASCII.
 * @throws TypeError or RangeError naming the field that is not valid
 */
export function formatFencingToken(token: FencingToken): string {
  const { jobId, generation, leaseId } = checkToken(token)
  const parameters = new Map([['job', textOf(jobId)]])
  if (leaseId !== undefined) parameters.set('lease', textOf(leaseId))
  return serializeItem([generation, parameters])
}

const EXAMPLE = '7;job="import-42";lease="2f1c"'

/**
 * Reads one `Fencing-Token` line. Unknown parameters are ignored.
 * @throws RequestRefusedError `token_malformed`
 */
export function parseFencingToken(text: string): SentToken {
  const malformed = (detail: string) => new RequestRefusedError('token_malformed', detail)
  const item = canonicalItem(text)
  if (item === undefined)
    throw malformed(`it must be a canonical RFC 9651 Item, such as ${EXAMPLE}`)
  const [generation, parameters] = item
  const problem =
    typeof generation === 'number'
      ? generationProblem(generation)
      : `must be first, as in ${EXAMPLE}`
  if (problem !== undefined) throw malformed(`the generation ${problem}`)
  const id = (name: 'job' | 'lease'): string | undefined => {
    const value = parameters.get(name)
    if (value === undefined) return undefined
    const read = stringOf(value)
    const wrong = read === undefined ? 'must be a String' : idProblem(read)
    if (wrong !== undefined) throw malformed(`${name} ${wrong}`)
    return read
  }
  return { generation: generation as number, jobId: id('job'), leaseId: id('lease') }
}

/**
 * `"charge-1"`: a String, or a Display String where the id is not ASCII.
 * @throws TypeError or RangeError where the operation id is not valid
 */
export function formatIdempotencyKey(operationId: string): string {
  return serializeItem([textOf(checkId('operationId', operationId)), new Map()])
}

// Many clients send the key bare. No quote, comma, semicolon, backslash or space: a bare key can be
// mistaken neither for a quoted one nor for two lines that a proxy has joined.
const BARE_KEY = /^[A-Za-z0-9!#$%&'*+\-.^_`|~:/=@]+$/

/**
 * Reads one `Idempotency-Key` line: `"charge-1"` and `charge-1` are the same key. A bare key is of
 * letters, digits and ``!#$%&'*+-.^_`|~:/=@``, taken as they stand.
 * @throws RequestRefusedError `operation_id_malformed`
 */
export function parseIdempotencyKey(text: string): string {
  const item = BARE_KEY.test(text) ? text : canonicalItem(text)?.[0]
  const key = stringOf(item)
  const problem = key === undefined ? 'must be a canonical String, or bare' : idProblem(key)
  if (key !== undefined && problem === undefined) return key
  throw new RequestRefusedError('operation_id_malformed', `the key ${problem}`)
}

/** `applied;highest=7` */
export function formatFencingVerdict({ word, highestGeneration }: FencingVerdict): string {
  const highest = highestGeneration === undefined ? [] : ([['highest', highestGeneration]] as const)
  return serializeItem([new Token(word), new Map(highest)])
}

/** Reads a `Fencing-Verdict`, or returns `undefined` where it is absent or none. */
export function parseFencingVerdict(
  text: string | null | undefined,
): FencingVerdict<string> | undefined {
  const item = text === null || text === undefined ? undefined : canonicalItem(text)
  if (item === undefined || !(item[0] instanceof Token)) return undefined
  const highest = item[1].get('highest')
  const known = highest !== undefined && generationProblem(highest) === undefined
  return { word: item[0].toString(), highestGeneration: known ? (highest as number) : undefined }
}

/**
 * The only line of that name among raw headers (name, value, name, value), or `undefined` where
 * there is none. Repeated lines are refused, never joined and never "the last wins": somebody
 * between sender and destination has added one.
 * @throws RequestRefusedError with `code` where the line is repeated
 */
export function onlyHeader(
  rawHeaders: readonly string[],
  name: string,
  code: 'token_malformed' | 'operation_id_malformed',
): string | undefined {
  const wanted = name.toLowerCase()
  const lines = rawHeaders.filter(
    (_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === wanted,
  )
  if (lines.length > 1) throw new RequestRefusedError(code, `there are ${lines.length} ${name}`)
  return lines[0]
}

const ASCII = /^[\x20-\x7e]*$/

function textOf(id: string): string | DisplayString {
  return ASCII.test(id) ? id : new DisplayString(id)
}

/** An ASCII text has one spelling, the String. */
function stringOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (!(value instanceof DisplayString) || ASCII.test(value.toString())) return undefined
  return value.toString()
}

function canonicalItem(text: string): Item | undefined {
  try {
    const item = parseItem(text.replaceAll(LEADING_BOM, `$&${BOM}`))
    return serializeItem(item) === text ? item : undefined
  } catch {
    return undefined
  }
}

// The parser's TextDecoder drops one U+FEFF at the start of a Display String: it is given two. An
// opening `%"` stands nowhere else, since a quote inside a String is escaped.
const BOM = '%ef%bb%bf'
const LEADING_BOM = /%"%ef%bb%bf/g
