/** Requests of the probe: header lines as they are given, bodies that can be held back. */

import http from 'node:http'
import https from 'node:https'

/** One request that makes one write, without the headers of the protocol. */
export interface ProbeRequest {
  /** `'POST'` unless told. */
  readonly method?: string | undefined
  /** Path and query, resolved against the base URL. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: string | undefined
}

export interface Answer {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
}

/** A request under way. `finish` sends what was held back of its body; repeating it is harmless. */
interface Call {
  readonly answer: Promise<Answer>
  /** Resolves once everything but the held part has been handed to the network. */
  readonly sent: Promise<void>
  finish(): void
}

/** A list of values is sent as one header line each, as a careless proxy would. */
export type Headers = Readonly<Record<string, string | readonly string[]>>

/** Sends a request on a connection of its own, all but the last byte of its body. */
export function begin(
  baseUrl: string | URL,
  { method = 'POST', path, headers = {}, body = '' }: ProbeRequest,
  own: Headers,
  timeoutMs: number,
): Call {
  const url = new URL(path, baseUrl)
  const bytes = Buffer.from(body)
  const lines: http.OutgoingHttpHeaders = { ...headers, 'Content-Length': bytes.length }
  for (const [name, value] of Object.entries(own)) {
    lines[name] = typeof value === 'string' ? value : [...value]
  }
  const request = (url.protocol === 'https:' ? https : http).request(url, {
    method,
    headers: lines,
    agent: false,
  })
  const answer = answerOf(request, timeoutMs)
  // Whoever begins a call waits for its answer later: until then a failure has no listener.
  answer.catch(() => {})
  const held = bytes.subarray(-1)
  const first = bytes.subarray(0, -1)
  const sent = new Promise<void>((resolve) => {
    request.once('close', resolve)
    request.flushHeaders()
    if (first.length > 0) request.write(first, () => resolve())
    else request.once('socket', (socket) => socket.once('connect', () => resolve()))
  })
  const finish = () => {
    if (!request.writableEnded) request.end(held)
  }
  return { answer, sent, finish }
}

function answerOf(request: http.ClientRequest, timeoutMs: number): Promise<Answer> {
  return new Promise<Answer>((resolve, reject) => {
    const timer = setTimeout(() => {
      request.destroy(new Error(`no answer within ${timeoutMs} ms`))
    }, timeoutMs)
    request.once('close', () => clearTimeout(timer))
    request.on('error', reject)
    request.once('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const { statusCode: status = 0, headers } = response
        resolve({ status, headers, body: Buffer.concat(chunks).toString('utf8') })
      })
    })
  })
}
