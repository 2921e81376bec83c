import { RequestRefusedError } from '../errors.ts'

/** The largest body that a service reads, in bytes; its messages are far below it. */
const MAX_JSON_BYTES = 64 * 1024

/**
 * Reads a stream of bytes as JSON; `undefined` where there are none.
 * @throws RequestRefusedError `request_malformed`: too long, not UTF-8, not JSON, cut off
 */
export async function readJson(stream: AsyncIterable<Uint8Array | string>): Promise<unknown> {
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of stream) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
      size += bytes.byteLength
      if (size > MAX_JSON_BYTES) break
      chunks.push(bytes)
    }
  } catch (error) {
    throw malformed('the body was cut off', error)
  }
  if (size > MAX_JSON_BYTES) throw malformed(`the body is longer than ${MAX_JSON_BYTES} bytes`)
  return parseJson(Buffer.concat(chunks))
}

/** Like {@link readJson}, of bytes that are there. */
export function parseJson(bytes: Uint8Array): unknown {
  if (bytes.byteLength === 0) return undefined
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as unknown
  } catch (error) {
    throw malformed('the body is not JSON in UTF-8', error)
  }
}

function malformed(detail: string, cause?: unknown): RequestRefusedError {
  return new RequestRefusedError('request_malformed', detail, {}, { cause })
}
