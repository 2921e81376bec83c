import type { IncomingMessage } from 'node:http'
import type { RequestBody } from '../wire/fingerprint.ts'

/**
 * What is used of a request of Express, 4.21 or 5. Hooks get the request as it is: annotate their
 * parameter (`(req: Request) => …`) to see all of it.
 */
export interface ExpressRequest extends IncomingMessage {
  readonly originalUrl: string
  readonly params: Readonly<Record<string, string>>
  readonly body?: unknown
  /** Kept by some set-ups (`verify` of a body parser): the bytes before they were parsed. */
  readonly rawBody?: unknown
  /** Set by body-parser once it has read the body. */
  readonly _body?: boolean
}

/** The body, if somebody has read it. The stream is not touched. */
export function bodyOf(req: ExpressRequest): RequestBody {
  const { rawBody, body } = req
  if (!hasBody(req)) return { kind: 'none' }
  if (isData(rawBody)) return { kind: 'raw', data: rawBody }
  if (isData(body)) return { kind: 'raw', data: body }
  // Express 4 has `{}` where no parser took the body on.
  const read = req.readableEnded || req._body === true
  if (body === undefined || (!read && isEmpty(body))) return { kind: 'unread' }
  return { kind: 'parsed', value: body }
}

/** RFC 9112, section 6.3: a request without either header has no body. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function isData(value: unknown): value is Uint8Array | string {
  return typeof value === 'string' || value instanceof Uint8Array
}

function isEmpty(body: unknown): boolean {
  return typeof body === 'object' && body !== null && Object.keys(body).length === 0
}
