/** One remote service: requests that end in time, answers that are JSON or nothing at all. */

import { StoreUnavailableError } from '../../errors.ts'
import { checkDuration, checkOptionNames, type OptionNames } from '../../options.ts'
import { readRetryAfter, type WireRequest } from '../../wire/message.ts'
import { type Problem, parseProblem } from '../../wire/problem.ts'

/** How a remote service is called. */
export interface HttpServiceOptions {
  /** What sends the requests; the global `fetch` unless told. */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined
  /** Sent with each request, such as `authorization`. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** How long an answer is waited for, its body included, in milliseconds; 10 000 unless told. */
  readonly timeoutMs?: number | undefined
}

const NAMES = {
  fetch: true,
  headers: true,
  timeoutMs: true,
} satisfies OptionNames<HttpServiceOptions>

/** An answer of the service itself: a value of the port, or a problem. */
export interface HttpAnswer {
  readonly status: number
  readonly body: unknown
  readonly problem: Problem | undefined
  /** From `Retry-After`, where it is given in seconds. */
  readonly retryAfterMs: number | undefined
  /** The error where it turns out to be none of the service's. */
  unexpected(cause?: unknown): StoreUnavailableError
}

export class HttpService {
  readonly #baseUrl: string
  readonly #options: HttpServiceOptions
  readonly #timeoutMs: number
  readonly #underWay = new Set<AbortController>()
  #closed = false

  /** @throws TypeError or RangeError naming the option */
  constructor(baseUrl: string | URL, options: HttpServiceOptions = {}) {
    checkOptionNames(options, NAMES)
    this.#baseUrl = checkBaseUrl(baseUrl)
    this.#timeoutMs = checkDuration(
      'timeoutMs',
      options.timeoutMs === undefined ? 10_000 : options.timeoutMs,
    )
    if (options.fetch !== undefined && typeof options.fetch !== 'function') {
      throw new TypeError('fetch must be a function')
    }
    this.#options = { ...options, headers: Object.fromEntries(new Headers(options.headers)) }
  }

  /**
   * Sends one request. Nothing is sent twice: whether to repeat it is the caller's to know.
   * @throws StoreUnavailableError where there is no answer in time, or none of the service's
   */
  async send(request: WireRequest, headers: Record<string, string> = {}): Promise<HttpAnswer> {
    if (this.#closed) throw new StoreUnavailableError('the store is closed')
    const ending = new AbortController()
    const late = () => ending.abort(new Error(`no answer within ${this.#timeoutMs} ms`))
    const timer = setTimeout(late, Math.min(this.#timeoutMs, 2 ** 31 - 1))
    this.#underWay.add(ending)
    try {
      return await this.#exchange(request, headers, ending.signal)
    } catch (error) {
      if (error instanceof StoreUnavailableError) throw error
      const cause = ending.signal.aborted ? ending.signal.reason : error
      throw new StoreUnavailableError(`cannot reach ${shown(this.#baseUrl)}`, { cause })
    } finally {
      clearTimeout(timer)
      this.#underWay.delete(ending)
    }
  }

  /** Gives up what is under way, and refuses what comes. */
  close(): void {
    this.#closed = true
    for (const ending of this.#underWay) ending.abort(new Error('the store was closed'))
  }

  async #exchange(
    request: WireRequest,
    headers: Record<string, string>,
    signal: AbortSignal,
  ): Promise<HttpAnswer> {
    const { method, target, body } = request
    const url = this.#baseUrl + target
    const json = body === undefined ? {} : { 'content-type': 'application/json' }
    const send = this.#options.fetch ?? globalThis.fetch
    const response = await send(url, {
      method,
      headers: { accept: 'application/json', ...json, ...this.#options.headers, ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      // A leaseId is a secret of this service and its holder: it follows no redirect.
      redirect: 'manual',
      signal,
    })
    const text = await response.text()
    const problem = parseProblem(response.headers.get('content-type'), text)
    const { status } = response
    const unexpected = (cause?: unknown) => notTheService(request, url, status, cause)
    if (problem === undefined && status >= 500) throw unexpected()
    try {
      const retryAfterMs = readRetryAfter(response.headers)
      return { status, body: JSON.parse(text), problem, retryAfterMs, unexpected }
    } catch (error) {
      throw unexpected(error)
    }
  }
}

/** The error of a service that does not carry out what it is asked. */
export function refusedToAnswer(problem: Problem): StoreUnavailableError {
  const { code, detail, retryable } = problem
  const what = `the service answered ${code}${detail === undefined ? '' : `: ${detail}`}`
  return new StoreUnavailableError(what, { retryable })
}

/** Whoever answered: mostly a base URL that is wrong, or routes that nobody has mounted. */
function notTheService(
  { method, target }: WireRequest,
  url: string,
  status: number,
  cause: unknown,
): StoreUnavailableError {
  const [routes, path] = target.startsWith('/fences/')
    ? ['fenceRoutes', '/fences']
    : ['leaseRoutes', '/leases']
  const hint =
    status === 404 || status === 405
      ? `: are ${routes} mounted there, and is the base URL without ${path}?`
      : ''
  const what = `an answer that is none of the service's (status ${status})`
  return new StoreUnavailableError(`${method} ${shown(url)}: ${what}${hint}`, { cause })
}

/** A URL as a message may tell it: its credentials and its query are nobody's business. */
function shown(url: string): string {
  const { origin, pathname } = new URL(url)
  return origin + pathname
}

function checkBaseUrl(baseUrl: unknown): string {
  const text = String(baseUrl)
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new TypeError('baseUrl must be an absolute URL of http or https')
  }
  if (url.search !== '' || url.hash !== '') throw new RangeError('baseUrl must end with its path')
  return url.href.replace(/\/+$/, '')
}
