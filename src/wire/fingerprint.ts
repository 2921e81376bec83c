/**
 * What makes two requests the same: a digest over method, target, media type and body.
 *
 * The target is path and query as they were sent, since both can say what is to be written. Of the
 * content type only type and subtype count, lower-cased: parameters such as a charset differ
 * between clients that send the same thing.
 */

import { createHash } from 'node:crypto'
import { RequestRefusedError } from '../errors.ts'

/** The body of a request as far as the destination has it; reading it is left to the parsers. */
export type RequestBody =
  | { readonly kind: 'none' }
  /** As it came, or as text. */
  | { readonly kind: 'raw'; readonly data: Uint8Array | string }
  /** Taken apart by a parser (JSON, a form): the order of members does not count. */
  | { readonly kind: 'parsed'; readonly value: unknown }
  /** There is one that nobody has read yet. */
  | { readonly kind: 'unread' }

export interface FingerprintParts {
  readonly method: string
  /** Path and query as they were sent. */
  readonly target: string
  readonly contentType: string | undefined
  readonly body: RequestBody
}

const ADVICE =
  'mount its parser before the guard, keep req.rawBody,' +
  ' or give the guard a fingerprint of your own (false for none)'

/**
 * The SHA-256 of a request, in hex.
 * @throws RequestRefusedError `request_malformed` where the body was not read, is multipart (its
 * files are not in the parsed body) or is nested deeper than 1000 levels
 * @throws TypeError where a parser has made something other than plain data of the body
 */
export function fingerprintOf({ method, target, contentType, body }: FingerprintParts): string {
  const mediaType = contentType?.split(';')[0]?.trim().toLowerCase() ?? ''
  // A JSON array has one reading, so that no part can run over into the next.
  const head = JSON.stringify([method, target, mediaType, body.kind])
  return createHash('sha256').update(`${head}\n`).update(bodyBytes(body, mediaType)).digest('hex')
}

function bodyBytes(body: RequestBody, mediaType: string): Uint8Array | string {
  switch (body.kind) {
    case 'none':
      return ''
    case 'raw':
      return body.data
    case 'parsed':
      if (!mediaType.startsWith('multipart/')) return canonicalJson(body.value)
      throw unreadable(`a ${mediaType} body cannot be told from another`)
    case 'unread':
      throw unreadable('the body was not parsed')
  }
}

// JSON.parse nests deeper than a recursive walk can follow: a body must not overflow the stack.
const DEEPEST = 1000

/**
 * JSON with the members of each object in code-unit order, whatever the locale (as RFC 8785,
 * section 3.2.3): the same data has the same text, whoever has serialised it.
 */
export function canonicalJson(value: unknown, depth = 0): string {
  if (depth > DEEPEST) {
    throw new RequestRefusedError('request_malformed', 'the body is nested too deeply')
  }
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    return canonicalJson(value.toJSON(), depth + 1)
  }
  if (Array.isArray(value)) {
    return `[${value.map((item) => canonicalJson(item, depth + 1)).join(',')}]`
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    throw new TypeError(`the body holds an instance of ${value.constructor?.name}: ${ADVICE}`)
  }
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member, depth + 1)}`)
  return `{${members.join(',')}}`
}

function unreadable(problem: string): RequestRefusedError {
  return new RequestRefusedError('request_malformed', `${problem}: ${ADVICE}`)
}
