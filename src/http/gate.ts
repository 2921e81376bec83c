import { RequestRefusedError, StoreUnavailableError, WriteRefusedError } from '../errors.ts'
import { publishDecision, publishFault } from '../events.ts'
import type { JobKey, StoreMode } from '../guard/fence-store.ts'
import type { WriteIntent } from '../guard/intent.ts'
import type { WriteGuard } from '../guard/write-guard.ts'
import { checkId, idProblem } from '../token.ts'
import { fingerprintOf } from '../wire/fingerprint.ts'
import {
  FENCING_TOKEN,
  IDEMPOTENCY_KEY,
  onlyHeader,
  parseFencingToken,
  parseIdempotencyKey,
} from '../wire/headers.ts'
import type { Exchange } from './exchange.ts'
import type { FencingSettings } from './fencing-options.ts'
import { mustAllow } from './http-error.ts'
import { scopeOf, tokenFor } from './identify.ts'
import type { TokenlessEntry } from './request-fence.ts'

/** What the gate knows of a request that it lets in. */
export interface Entry {
  /** Where there is no good token, its `token` throws the refusal. */
  readonly intent: WriteIntent
  readonly tokenless?: TokenlessEntry | undefined
  /** Whether the request bears a token and its method is one that may write. */
  readonly unsafe?: boolean | undefined
  readonly highestGeneration?: number | undefined
}

const SAFE = ['GET', 'HEAD', 'OPTIONS']

/**
 * The way in of a guarded route, in the order of rule 11: malformed, not authentic, then the fence.
 * It reads headers and hooks, and advances the fence to the token; operations are the verbs' own.
 */
export class Gate<Tx, Mode extends StoreMode, Req> {
  readonly #guard: WriteGuard<Tx, Mode>
  readonly #settings: FencingSettings<Req>

  constructor(guard: WriteGuard<Tx, Mode>, settings: FencingSettings<Req>) {
    this.#guard = guard
    this.#settings = settings
  }

  /**
   * Lets a request in, or refuses it.
   * @throws RequestRefusedError at the door, WriteRefusedError `stale` or `conflict`,
   * StoreUnavailableError, and what the hooks throw
   */
  async enter(exchange: Exchange<Req>): Promise<Entry> {
    try {
      return await this.#enter(exchange)
    } catch (error) {
      if (!(error instanceof RequestRefusedError)) throw error
      const reportOnly = this.#settings.mode === 'report' ? true : undefined
      const { code: decision, jobId, generation } = error
      const event = { decision, jobId, generation, reportOnly, scope: '' } as const
      publishDecision(() => ({ verb: 'request', ...event }))
      if (!reportOnly) throw error
      const job = await this.#jobOf(exchange).catch(() => undefined)
      return tokenless({ refusal: error, job, evenIfFenced: true })
    }
  }

  async #enter(exchange: Exchange<Req>): Promise<Entry> {
    const { method, rawHeaders } = exchange
    const safe = SAFE.includes(method)
    // A preflight bears no token whatever the request that it asks for will bear.
    const line =
      method === 'OPTIONS' ? undefined : onlyHeader(rawHeaders, FENCING_TOKEN, 'token_malformed')
    if (line === undefined) return safe ? this.#pass() : this.#withoutToken(exchange)
    const sent = parseFencingToken(line)
    const operationId = safe ? undefined : this.#operationId(rawHeaders)
    const token = tokenFor(await this.#routeJob(exchange), sent)
    const scope = await scopeOf(this.#settings.scope, exchange.request)
    const { verifyToken, mode, protect } = this.#settings
    if (verifyToken !== undefined) {
      const rejected = (cause?: unknown) =>
        new RequestRefusedError('token_rejected', 'it is not authentic', token, { cause })
      await mustAllow(() => verifyToken(token, exchange.request), rejected)
    }
    const intent = await this.#intent(exchange, {
      token,
      operationId,
      scope,
      mode: mode === 'report' ? 'report' : 'enforce',
    })
    // The effect of a whole handler advances the fence itself, in the step that reserves it.
    if (protect === 'handler' && !safe) return { intent, unsafe: true }
    return { intent, unsafe: !safe, highestGeneration: await this.#advance(intent) }
  }

  #operationId(rawHeaders: readonly string[]): string | undefined {
    const line = onlyHeader(rawHeaders, IDEMPOTENCY_KEY, 'operation_id_malformed')
    if (line !== undefined) return parseIdempotencyKey(line)
    if (this.#settings.requireOperationId) throw new RequestRefusedError('operation_id_required')
    return undefined
  }

  /** The job of the route; `undefined` where there is no hook that says it. */
  async #routeJob({ request }: Exchange<Req>): Promise<string | undefined> {
    const { jobId } = this.#settings
    if (jobId === undefined) return undefined
    const given: unknown = await jobId(request)
    const problem = idProblem(given)
    if (problem === undefined) return given as string
    throw new RequestRefusedError('request_malformed', `the job id of the route ${problem}`)
  }

  async #intent(exchange: Exchange<Req>, known: WriteIntent): Promise<WriteIntent> {
    const { fingerprint, protect } = this.#settings
    if (known.operationId === undefined || fingerprint === false) return known
    if (typeof fingerprint === 'function') {
      const given = await fingerprint(exchange.request)
      return { ...known, fingerprint: checkId('fingerprint', given) }
    }
    const { method, target, contentType } = exchange
    const digest = () => fingerprintOf({ method, target, contentType, body: exchange.body() })
    // Read now if it can be, before the handler changes the parsed body. A handler that writes
    // may still have its parser before it; one that is the effect has not run when it is needed.
    if (protect === 'write' && exchange.body().kind === 'unread') {
      return withGetter(known, 'fingerprint', digest)
    }
    return { ...known, fingerprint: digest() }
  }

  async #advance(intent: WriteIntent): Promise<number | undefined> {
    const { token, scope, mode } = intent
    try {
      if (mode === 'report' && (await this.#reportsRefusal(intent))) return undefined
      return (await this.#guard.advance(token, scope)).highestGeneration
    } catch (error) {
      const refused = error instanceof WriteRefusedError
      const down = error instanceof StoreUnavailableError
      const opens = mode === 'report' || (down && this.#guard.failsOpen)
      if (!refused && (opens || down)) {
        const { jobId, generation } = token
        const fault = opens ? 'failed_open' : 'store_unavailable'
        publishFault({ fault, scope, jobId, generation, error })
      }
      if (opens) return undefined
      throw refused ? await this.#withOperation(error, intent) : error
    }
  }

  /** Report mode: what would be refused is told, and does not come as far as the guard. */
  async #reportsRefusal({ token, scope = '' }: WriteIntent): Promise<boolean> {
    const verdict = await this.#guard.judge({ token, scope })
    if (verdict.status !== 'refuse') return false
    const { code: decision, highestGeneration } = verdict
    if (decision !== 'stale' && decision !== 'conflict') return false
    const { jobId, generation } = token
    const event = { decision, scope, jobId, generation, highestGeneration } as const
    publishDecision(() => ({ verb: 'request', ...event, reportOnly: true }))
    return true
  }

  /** A stale caller is told whether its operation had been applied (rule 15). */
  async #withOperation(error: WriteRefusedError, intent: WriteIntent): Promise<WriteRefusedError> {
    const { operationId } = intent
    if (operationId === undefined) return error
    // Knowing less is no reason to refuse in another way.
    const verdict = await this.#guard.judge(intent).catch(() => undefined)
    if (verdict?.status !== 'refuse') return error
    const { highestGeneration, operationApplied } = verdict
    const { jobId, generation } = error
    const known = { jobId, generation, operationId, highestGeneration, operationApplied }
    return new WriteRefusedError(error.code, known)
  }

  /** An unsafe request without a token: only before its job has its first fence (once-fenced). */
  async #withoutToken(exchange: Exchange<Req>): Promise<Entry> {
    if (this.#settings.mode !== 'once-fenced') throw new RequestRefusedError('token_required')
    const job = await this.#jobOf(exchange)
    const jobId = job?.jobId ?? ''
    const refusal = new RequestRefusedError('token_required', 'the job has a fence', { jobId })
    if ((await this.#guard.inspect(jobId, job?.scope)) !== undefined) throw refusal
    publishDecision(() => ({ verb: 'request', decision: 'passed', scope: '', ...job }))
    return tokenless({ refusal, job, evenIfFenced: false })
  }

  async #jobOf(exchange: Exchange<Req>): Promise<JobKey | undefined> {
    const jobId = await this.#routeJob(exchange)
    if (jobId === undefined) return undefined
    return { jobId, scope: await scopeOf(this.#settings.scope, exchange.request) }
  }

  #pass(): Entry {
    publishDecision(() => ({ verb: 'request', decision: 'passed', scope: '' }))
    const refusal = new RequestRefusedError('token_required')
    return tokenless({ refusal, evenIfFenced: false })
  }
}

/** What asks for the token of such a request gets the refusal, thrown. */
function tokenless(entry: TokenlessEntry): Entry {
  const intent = withGetter({}, 'token', () => {
    throw entry.refusal
  })
  return { intent, tokenless: entry }
}

function withGetter<Name extends keyof WriteIntent>(
  intent: Omit<WriteIntent, Name>,
  name: Name,
  get: () => WriteIntent[Name],
): WriteIntent {
  return Object.defineProperty({ ...intent }, name, { enumerable: true, get }) as WriteIntent
}
