/** What the services have in common: who may call, what is read, how it is answered. */

import { RequestRefusedError } from '../errors.ts'
import { checkOptionNames } from '../options.ts'
import type { WireAnswer } from '../wire/message.ts'
import type { Answer } from './exchange.ts'
import type { Awaitable } from './fencing-options.ts'
import { mustAllow, problemAnswer } from './http-error.ts'

/** One request to a service, as a framework adapter hands it over. */
export interface ServiceRequest<Req> {
  /** What the hooks are called with. */
  readonly request: Req
  readonly method: string
  /** Path and query below the place where the service is mounted. */
  readonly target: string
  readonly rawHeaders: readonly string[]
  /** Reads and parses the body. @throws RequestRefusedError `request_malformed` */
  json(): Promise<unknown>
}

/** Answers a request, or `undefined` where it is for none of its routes. */
export type Service<Req> = (request: ServiceRequest<Req>) => Promise<Answer | undefined>

/**
 * Whether the caller may make that call: only `true` lets it through. One that throws refuses it
 * too, unless the error has a status of its own. `'none'` lets everybody call everything.
 */
export type Authorize<Req, Call> = 'none' | ((request: Req, call: Call) => Awaitable<boolean>)

/** @throws TypeError where there is no `authorize`, and for an option that there is not */
export function checkAuthorize<Req, Call>(
  options: { readonly authorize: Authorize<Req, Call> } | undefined,
  names: Readonly<Record<string, true>>,
): (request: Req, call: Call) => Promise<void> {
  checkOptionNames(options ?? {}, names)
  const authorize = options?.authorize
  if (authorize === 'none') return async () => {}
  if (typeof authorize !== 'function') {
    throw new TypeError(
      "authorize must be a function that says who may call what, or 'none' to let everybody",
    )
  }
  return (request, call) =>
    mustAllow(
      () => authorize(request, call),
      (cause) => new RequestRefusedError('forbidden', undefined, {}, { cause }),
    )
}

export function jsonAnswer({ status, body, retryAfterMs }: WireAnswer): Answer {
  const headers = { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }
  const wait = retryAfterMs === undefined ? {} : { 'Retry-After': seconds(retryAfterMs) }
  return { status, headers: { ...headers, ...wait }, body: JSON.stringify(body) }
}

/** Turns refusals and a store that is out of reach into problem answers; other errors go on. */
export async function answering(
  answer: () => Promise<Answer | undefined>,
): Promise<Answer | undefined> {
  try {
    return await answer()
  } catch (error) {
    const problem = problemAnswer(error)
    if (problem === undefined) throw error
    return problem
  }
}

function seconds(ms: number): string {
  return String(Math.max(1, Math.ceil(ms / 1000)))
}
