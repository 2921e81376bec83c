/** Reading and writing `node:http` responses, the way that middleware above and below expects. */

import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Answer, HeadChange, HeaderFields } from '../http/exchange.ts'

type HeadHeaders = OutgoingHttpHeaders | readonly (string | number | readonly string[])[]
/** The arguments of `writeHead`: (status, message?, headers?). */
export type HeadArguments = readonly [status: number, ...rest: (string | HeadHeaders | undefined)[]]

/** Puts what `writeHead` was given on the response, where layers above and below can see it. */
export function applyHead(res: ServerResponse, args: HeadArguments): void {
  const [status, ...rest] = args
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
  'set-cookie',
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

/** RFC 9110, section 6.4.1: these answers never have content. */
export function hasContent(status: number): boolean {
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
