/** What the messages of the services have in common: paths, and checked members of JSON objects. */

import { RequestRefusedError } from '../errors.ts'

/** A request without its headers. `target` is path and query; `body` is JSON, already parsed. */
export interface WireRequest {
  readonly method: string
  readonly target: string
  readonly body?: unknown
}

/** An answer without its headers; `retryAfterMs` is there where a Retry-After belongs on it. */
export interface WireAnswer {
  readonly status: number
  readonly body: object
  readonly retryAfterMs?: number | undefined
}

/** A JSON object whose members have not been looked at. */
export type Message = Readonly<Record<string, unknown>>

/** Runs a reader of requests: what it finds wrong becomes the refusal `request_malformed`. */
export function readingRequest<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof RangeError)) throw error
    throw new RequestRefusedError('request_malformed', error.message, {}, { cause: error })
  }
}

/** @throws TypeError where the value is no JSON object */
export function fields(value: unknown, name = 'the body'): Message {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new TypeError(`${name} must be a JSON object`)
  }
  return value as Message
}

/** `undefined` where the member is absent, else what the check makes of it. */
export function optional<T>(value: unknown, check: (value: unknown) => T): T | undefined {
  return value === undefined ? undefined : check(value)
}

/** @throws TypeError or RangeError where the member is no whole number of 0 or more */
export function wholeNumber(message: Message, name: string): number {
  const value = message[name]
  if (typeof value !== 'number') throw new TypeError(`${name} must be a number`)
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${name} must be whole`)
  return value
}

/** @throws TypeError where the member is neither true nor false */
export function boolean(message: Message, name: string): boolean {
  const value = message[name]
  if (typeof value !== 'boolean') throw new TypeError(`${name} must be true or false`)
  return value
}

/** @throws RangeError where the member is none of those allowed */
export function oneOf<T extends string>(message: Message, name: string, allowed: readonly T[]): T {
  const value = message[name]
  const found = allowed.find((each) => each === value)
  if (found === undefined) throw new RangeError(`${name} must be one of ${allowed.join(', ')}`)
  return found
}

/**
 * The path of a job's verb. An id is one segment, percent-encoded once.
 * @throws RangeError for the ids `.` and `..`: URLs drop such segments, encoded ones too (WHATWG
 * URL, "double-dot path segment"), so that the call would go to some other path
 */
export function spellJobPath(root: string, jobId: string, verb?: string): string {
  if (jobId === '.' || jobId === '..') {
    throw new RangeError(`jobId must not be '${jobId}' here: the path of a URL cannot carry it`)
  }
  return `/${root}/${encodeURIComponent(jobId)}${verb === undefined ? '' : `/${verb}`}`
}

/**
 * Splits a request target. Segments and parameters are decoded once.
 * @throws TypeError where the encoding is broken, RangeError where a parameter is repeated
 */
export function readTarget(target: string): { path: string[]; query: Message } {
  const [path = '', ...rest] = target.split('?')
  // No prototype: a parameter may be called __proto__.
  const query: Record<string, string> = Object.create(null)
  for (const pair of rest.join('?').split('&')) {
    if (pair === '') continue
    const [name = '', ...value] = pair.split('=').map((part) => decode(part.replaceAll('+', ' ')))
    if (name in query) throw new RangeError(`${name} must be given once`)
    query[name] = value.join('=')
  }
  return { path: path.split('/').slice(1).map(decode), query }
}

/** How long an answer asks to wait, in milliseconds; absent, and dates, are `undefined`. */
export function readRetryAfter(headers: Headers): number | undefined {
  const seconds = headers.get('Retry-After') ?? ''
  return /^[0-9]{1,6}$/.test(seconds) ? Number(seconds) * 1000 : undefined
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch (error) {
    throw new TypeError('the path or query is not percent-encoded UTF-8', { cause: error })
  }
}
