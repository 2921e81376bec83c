/** Reading and writing `node:http` responses, the way that middleware above and below expects. */

import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Answer, HeadChange, HeaderFields } from '../http/exchange.ts'

type HeadHeaders = OutgoingHttpHeaders | readonly (string | number | readonly string[])[]
/** The arguments of `writeHead`: (status, message?, headers?). */
export type HeadArguments = readonly [status: number, ...rest: (string | HeadHeaders | undefined)[]]

/** The last argument of `write` and `end`. */
export type Callback = (error?: Error) => void

/**
 * Puts what `writeHead` was given on the response, where layers above and below can see it.
 * @throws RangeError as Node does, while whoever asks for such a status is still there to hear it
 */
export function applyHead(res: ServerResponse, args: HeadArguments): void {
  const [given, ...rest] = args
  const status = Number(given)
  if (!(status >= 100 && status <= 999)) {
    const error = new RangeError(`Invalid status code: ${status}`)
    throw Object.assign(error, { code: 'ERR_HTTP_INVALID_STATUS_CODE' })
  }
  res.statusCode = status
  const [message] = rest
  if (typeof message === 'string') res.statusMessage = message
  const headers = rest.find((each) => typeof each === 'object')
  if (headers === undefined) return
  if (!Array.isArray(headers)) {
    for (const [name, value] of Object.entries(headers as OutgoingHttpHeaders)) {
      if (value !== undefined) res.setHeader(name, value)
    }
    return
  }
  // A flat list (name, value, …) or pairs. It replaces what was set, and may itself repeat names.
  const flat = headers.flat() as string[]
  const names = flat.filter((_, index) => index % 2 === 0)
  for (const name of names) res.removeHeader(name)
  for (const [index, name] of names.entries()) res.appendHeader(name, flat[2 * index + 1] ?? '')
}

/** The headers as they are now; a number is its decimal text. */
export function headersOf(res: ServerResponse): HeaderFields {
  return Object.fromEntries(
    Object.entries(res.getHeaders()).map(([name, value]) => [
      name,
      Array.isArray(value) ? value : String(value),
    ]),
  )
}

// What describes the body that is dropped; the others (CORS, security, tracing) stay.
const OF_THE_BODY = [
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-length',
  'content-range',
  'content-type',
  'etag',
  'last-modified',
  'link',
  'location',
  'transfer-encoding',
]

/** Sends an answer in place of whatever was being made ready. */
export function send(res: ServerResponse, answer: Answer, end: ServerResponse['end']): void {
  for (const name of OF_THE_BODY) res.removeHeader(name)
  res.statusCode = answer.status
  res.statusMessage = ''
  for (const [name, value] of Object.entries(answer.headers)) res.setHeader(name, value)
  const body = typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body
  if (hasContent(answer.status)) res.setHeader('Content-Length', body.byteLength)
  end.call(res, body, 'utf8')
}

/** Somebody else (a response time-out) may have answered while a store was asked. */
export function sendUnlessSent(res: ServerResponse, answer: Answer): void {
  if (!res.headersSent) send(res, answer, res.end)
}

/** RFC 9110, section 6.4.1: these answers never have content. */
function hasContent(status: number): boolean {
  return status >= 200 && status !== 204 && status !== 304
}

/**
 * Calls `hook` once, just before the head goes out, whichever way it does: `writeHead`, `write`,
 * `end` or `flushHeaders`. Once an answer is sent instead, what the handler writes is swallowed.
 */
export function beforeHead(res: ServerResponse, hook: (status: number) => HeadChange): void {
  const { writeHead, write, end, flushHeaders } = res
  let called = false
  let replaced = false
  /** Whether what the handler sends may go out. */
  const opens = (status: number): boolean => {
    if (called) return !replaced
    called = true
    const { headers, instead } = hook(status)
    for (const [name, value] of Object.entries(headers)) {
      if (value === undefined) res.removeHeader(name)
      else res.setHeader(name, value)
    }
    if (instead === undefined) return true
    res.removeHeader('Set-Cookie')
    // Sending it comes back here for its head, which must pass: the way is closed only then.
    send(res, instead, end)
    replaced = true
    return false
  }
  res.writeHead = ((...args: HeadArguments) => {
    if (replaced) return res
    applyHead(res, args)
    return opens(res.statusCode) ? writeHead.call(res, res.statusCode) : res
  }) as ServerResponse['writeHead']
  res.write = ((...args: Parameters<typeof write>) =>
    opens(res.statusCode) ? write.apply(res, args) : swallow(args)) as ServerResponse['write']
  res.end = ((...args: Parameters<typeof end>) => {
    if (opens(res.statusCode)) return end.apply(res, args)
    swallow(args)
    return res
  }) as ServerResponse['end']
  res.flushHeaders = () => {
    if (opens(res.statusCode)) flushHeaders.call(res)
  }
}

/** Takes a write that goes nowhere: who waits for its callback must not wait for ever. */
function swallow(args: readonly unknown[]): true {
  const callback = args.at(-1)
  if (typeof callback === 'function') process.nextTick(callback)
  return true
}

/** Makes a property of the response say what it will say later, or what it says anyway. */
export function pretend(
  res: ServerResponse,
  name: 'headersSent' | 'writableEnded',
  said: () => boolean | undefined,
): void {
  const own = Object.getOwnPropertyDescriptor(res, name)
  Object.defineProperty(res, name, {
    configurable: true,
    // Frameworks change the prototype of a response on its way: it is looked up when asked.
    get: () => said() ?? own?.get?.call(res) ?? Reflect.get(Object.getPrototypeOf(res), name, res),
  })
}

/** Calls `onCut` in place of `socket.destroy`, with what carries it out; returns what ends this. */
export function watchCuts(
  res: ServerResponse,
  onCut: (cut: () => void, error: Error | undefined) => void,
): () => void {
  let restore = () => {}
  const watch = (socket: Socket) => {
    const { destroy } = socket
    socket.destroy = (error) => {
      onCut(() => destroy.call(socket, error), error)
      return socket
    }
    restore = () => {
      socket.destroy = destroy
    }
  }
  // Behind another request of its connection a response has no socket yet.
  if (res.socket === null) res.once('socket', watch)
  else watch(res.socket)
  return () => {
    res.off('socket', watch)
    restore()
  }
}

/** The arguments of `write` and `end`: (chunk?, encoding?, callback?). */
export function readWrite(args: readonly unknown[]): { chunk?: Uint8Array; callback?: Callback } {
  const [data, encoding] = args
  const callback = args.find((each) => typeof each === 'function') as Callback | undefined
  const calls = callback === undefined ? {} : { callback }
  if (data === undefined || data === null || data === callback) return calls
  if (data instanceof Uint8Array) return { chunk: data, ...calls }
  if (typeof data !== 'string') {
    throw new TypeError('the chunk must be a string, a Buffer or a Uint8Array')
  }
  const spelled = typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8'
  return { chunk: Buffer.from(data, spelled), ...calls }
}

/** What Node throws where a head is changed that is sent. */
export function headIsSent(): Error {
  const error = new Error('Cannot set headers after they are sent to the client')
  return Object.assign(error, { code: 'ERR_HTTP_HEADERS_SENT' })
}
