/** What is kept of a handler's answer, and how it is given again. */

import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'
import type { Answer, HeaderFields, HeldAnswer } from './exchange.ts'

/** An answer on record: plain data, so that any codec brings it back as it was. */
export interface RecordedAnswer {
  readonly status: number
  readonly headers: HeaderFields
  /** In base64; `null` where it was too long, or could not be decoded. */
  readonly body: string | null
}

// An allow-list: what else a first answer bears (cookies, dates, connection) belongs to it alone.
const RECORDED_HEADERS = ['content-type', 'location', 'etag', 'content-language', 'link']
const OF_THE_BODY = ['content-type', 'content-language']

const DECODERS = new Map([
  ['gzip', gunzipSync],
  ['x-gzip', gunzipSync],
  ['deflate', inflateSync],
  ['br', brotliDecompressSync],
])

/**
 * What is recorded of an answer. A body that was compressed on its way here is recorded as it was
 * before: whoever asks again may accept another encoding, or none.
 */
export function recordAnswer({ status, headers, body }: HeldAnswer, limit: number): RecordedAnswer {
  const encoding = headers['content-encoding'] ?? 'identity'
  const plain = body === undefined ? undefined : decode(body, String(encoding), limit)
  const kept = Object.entries(headers).filter(
    ([name]) =>
      RECORDED_HEADERS.includes(name) && (plain !== undefined || !OF_THE_BODY.includes(name)),
  )
  return {
    status,
    headers: Object.fromEntries(kept),
    body: plain === undefined ? null : Buffer.from(plain).toString('base64'),
  }
}

/**
 * The answer to a duplicate. What is on record may also come from an operator or from a write: then
 * it is answered as JSON, or as 204 where there is no result.
 */
export function replayAnswer(recorded: unknown): Answer {
  if (recorded === undefined) return { status: 204, headers: {}, body: '' }
  if (!isRecordedAnswer(recorded)) {
    const headers = { 'content-type': 'application/json' }
    return { status: 200, headers, body: JSON.stringify(recorded) }
  }
  const { status, headers, body } = recorded
  return { status, headers, body: Buffer.from(body ?? '', 'base64') }
}

function decode(body: Uint8Array, encoding: string, limit: number): Uint8Array | undefined {
  if (encoding === 'identity' || body.byteLength === 0) return body
  try {
    return DECODERS.get(encoding.toLowerCase())?.(body, { maxOutputLength: Math.max(limit, 1) })
  } catch {
    return undefined
  }
}

function isRecordedAnswer(value: unknown): value is RecordedAnswer {
  const { status, headers, body } = Object(value) as Record<string, unknown>
  const isBody = body === null || typeof body === 'string'
  return Number.isInteger(status) && typeof headers === 'object' && headers !== null && isBody
}
