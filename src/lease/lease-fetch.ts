/**
 * `fetch` for the holder of a lease (rule 9): adds the token and the operation id, refuses locally
 * once the lease is over, understands what the guard at the other end answers, and repeats what
 * may be repeated, always under the same token and operation id.
 */

import { StoreUnavailableError, WriteRefusedError } from '../errors.ts'
import { publishFault } from '../events.ts'
import { checkDuration } from '../options.ts'
import { checkId } from '../token.ts'
import {
  FENCING_TOKEN,
  FENCING_VERDICT,
  formatFencingToken,
  formatIdempotencyKey,
  IDEMPOTENCY_KEY,
  parseFencingVerdict,
} from '../wire/headers.ts'
import { readRetryAfter } from '../wire/message.ts'
import { isProblemCode, parseProblem, problemError, problemStatus } from '../wire/problem.ts'
import { elapsedMs, instant } from './deadline.ts'
import type { Holding } from './holding.ts'
import { backoffMs, later, pause } from './waiting.ts'

/** The part of the global `fetch` that is used. */
export type Fetch = (input: string, init: RequestInit) => Promise<Response>

/** What `lease.fetch` takes besides what `fetch` takes. */
export interface LeaseFetchInit extends RequestInit {
  /** Names the effect, the same on each try; required for every method that is not safe. */
  readonly operationId?: string | undefined
  /** `false` accepts a 2xx to an unsafe method from a place that checks no token. */
  readonly requireVerdict?: boolean | undefined
  /** How long to repeat what may yet succeed, in milliseconds; 0 never repeats. */
  readonly retryForMs?: number | undefined
  /**
   * How long one try waits for the head of its answer, in milliseconds; 30 s unless told. It is
   * then sent again, as after any failure of the network. Above what the handler there may take.
   * A refusal is read here, and goes by its head where its body takes longer.
   */
  readonly timeoutMs?: number | undefined
}

interface Prepared {
  readonly url: string
  readonly init: RequestInit
  readonly safe: boolean
  readonly operationId: string | undefined
  readonly signal: AbortSignal
  readonly timeoutMs: number
}

/** One try: an answer for the caller, or why it failed and whether to try again. */
type Try =
  | { readonly response: Response; readonly again: boolean; readonly error?: undefined }
  | { readonly error: unknown; readonly again: boolean; readonly response?: undefined }

// RFC 9110, section 9.2.1, without TRACE, which fetch does not send.
const SAFE = ['GET', 'HEAD', 'OPTIONS']
// What gateways answer for a destination that they could not reach, or no longer can.
const GATEWAY = [502, 503, 504]

/**
 * Sends one request under the lease. As with `fetch`, an answer that is no refusal of the guard's
 * is yours to judge: look at `response.ok`, or a 404 is taken for work that was done.
 *
 * The body is read into memory once, so that every try sends the same bytes. Redirects are not
 * followed unless `redirect` says so: the token is a secret between the holder and this
 * destination.
 *
 * @throws LeaseLostError where the lease is over, before or while the request is under way
 * @throws WriteRefusedError where the guard refuses; `stale` and `conflict` end the lease as well
 * @throws StoreUnavailableError where the guard's store stays unavailable
 * @throws TypeError for an unsafe method without operationId, a header that is set here, a 2xx to
 * an unsafe method without Fencing-Verdict, and, as `fetch` does, where the network fails
 */
export async function leaseFetch(
  holding: Holding,
  defaults: { readonly fetch?: Fetch | undefined; readonly retryForMs: number },
  input: string | URL | Request,
  init: LeaseFetchInit = {},
): Promise<Response> {
  const { retryForMs = defaults.retryForMs, requireVerdict = true, timeoutMs = 30_000 } = init
  checkDuration('retryForMs', retryForMs, 0)
  checkDuration('timeoutMs', timeoutMs)
  const request = await prepare(holding, input, init, timeoutMs)
  const began = instant()
  for (let failures = 0; ; failures += 1) {
    // Nothing may come between this look at the clocks and the sending.
    holding.assertHeld()
    const send = defaults.fetch ?? globalThis.fetch
    const { response, error, again } = await tryOnce(holding, send, request)
    const waitMs = Math.max(retryAfterMs(error), backoffMs(failures))
    if (again && elapsedMs(began) + waitMs <= retryForMs) {
      // Not awaited: a body that somebody else reads as well is not cancelled until he is done.
      response?.body?.cancel().catch(() => {})
      await pause(waitMs, request.signal)
      if (!request.signal.aborted) continue
      throw request.signal.reason
    }
    if (response === undefined) throw error
    if (requireVerdict && !request.safe) assertVerdict(holding, request, response)
    return response
  }
}

async function prepare(
  holding: Holding,
  input: string | URL | Request,
  init: LeaseFetchInit,
  timeoutMs: number,
): Promise<Prepared> {
  const { operationId, requireVerdict: _, retryForMs: __, timeoutMs: ___, signal, ...rest } = init
  const request = new Request(input, rest)
  const method = request.method.toUpperCase()
  const safe = SAFE.includes(method)
  if (!safe && operationId === undefined) {
    throw new TypeError(`${method} needs an operationId: it is what makes a repetition harmless`)
  }
  const headers = new Headers(request.headers)
  for (const name of [FENCING_TOKEN, IDEMPOTENCY_KEY]) {
    if (headers.has(name)) throw new TypeError(`${name} is set by lease.fetch: leave it out`)
  }
  const { jobId, generation, leaseId } = holding.lease
  headers.set(FENCING_TOKEN, formatFencingToken({ jobId, generation, leaseId }))
  if (operationId !== undefined) {
    headers.set(IDEMPOTENCY_KEY, formatIdempotencyKey(checkId('operationId', operationId)))
  }
  const body = request.body === null ? null : new Uint8Array(await request.arrayBuffer())
  const asked = signal ?? (input instanceof Request ? input.signal : undefined)
  // A signal of this call's own: what fetch hangs on it goes with it (no listener stays behind).
  const ends = asked ? [holding.lostSignal, asked] : [holding.lostSignal]
  const own = AbortSignal.any(ends)
  const sent: RequestInit = { redirect: 'manual', ...rest, method, headers, body, signal: own }
  return { url: request.url, init: sent, safe, operationId, signal: own, timeoutMs }
}

async function tryOnce(holding: Holding, send: Fetch, request: Prepared): Promise<Try> {
  const { signal, timeoutMs } = request
  const late = new AbortController()
  const giveUp = () => late.abort(new DOMException(`no answer in ${timeoutMs} ms`, 'TimeoutError'))
  const timer = later(giveUp, timeoutMs)
  let response: Response
  let error: WriteRefusedError | StoreUnavailableError | undefined
  try {
    const ends = AbortSignal.any([signal, late.signal])
    response = await send(request.url, { ...request.init, signal: ends })
    error = await refusalIn(response, holding, request, late.signal)
  } catch (failure) {
    if (signal.aborted) throw signal.reason
    // Whether it arrived is not known: under the same operation id it can be sent again.
    return { error: failure, again: true }
  } finally {
    // The body of an answer that is the caller's may take its time.
    clearTimeout(timer)
  }
  if (error === undefined) {
    return { response, again: GATEWAY.includes(response.status) && !hasVerdict(response) }
  }
  if (error.code === 'stale' || error.code === 'conflict') holding.lose('fenced', error)
  const harmless = request.safe && error instanceof StoreUnavailableError
  return { error, again: error.retryable || harmless }
}

/**
 * The refusal that an answer carries. The verdict in its header decides, not the body: HEAD has
 * none, it may break off, and the application may have problems of its own under the same names.
 */
async function refusalIn(
  response: Response,
  { lease }: Holding,
  { operationId, signal }: Prepared,
  late: AbortSignal,
): Promise<WriteRefusedError | StoreUnavailableError | undefined> {
  const verdict = parseFencingVerdict(response.headers.get(FENCING_VERDICT))
  if (verdict === undefined) return undefined
  const { word, highestGeneration } = verdict
  if (!isProblemCode(word) || response.status !== problemStatus(word)) return undefined
  const { jobId, generation } = lease
  const sent = { jobId, generation, operationId, highestGeneration }
  const waitMs = readRetryAfter(response.headers)
  const text = await textBefore(late, response).catch(() => signal.throwIfAborted())
  const type = response.headers.get('Content-Type')
  const problem = text === undefined ? undefined : parseProblem(type, text)
  if (problem?.code === word) return problemError(problem, sent, waitMs)
  return word === 'store_unavailable'
    ? new StoreUnavailableError('the destination cannot reach its store')
    : new WriteRefusedError(word, { ...sent, retryAfterMs: waitMs })
}

/** Not left to `fetch`: one that is passed in may not end what it reads when it is told to. */
function textBefore(late: AbortSignal, response: Response): Promise<string> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(late.reason)
    if (late.aborted) giveUp()
    late.addEventListener('abort', giveUp)
    response.text().then(resolve, reject)
  })
}

function hasVerdict(response: Response): boolean {
  return parseFencingVerdict(response.headers.get(FENCING_VERDICT)) !== undefined
}

function retryAfterMs(error: unknown): number {
  return error instanceof WriteRefusedError ? (error.retryAfterMs ?? 0) : 0
}

/** A success that nobody checked is the fault that this package is there to end. */
function assertVerdict(
  { lease }: Holding,
  { operationId, url, init }: Prepared,
  response: Response,
): void {
  if (!response.ok || hasVerdict(response)) return
  const error = new TypeError(
    `${init.method} ${url} succeeded without a Fencing-Verdict: nothing there checks the token` +
      ' (requireVerdict: false accepts that)',
  )
  const { jobId, generation } = lease
  publishFault({ fault: 'unguarded_success', jobId, generation, operationId, error })
  throw error
}
