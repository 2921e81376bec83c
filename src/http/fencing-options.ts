import type { EffectOptions } from '../guard/effect.ts'
import {
  checkChoice,
  checkCount,
  checkDuration,
  checkOptionNames,
  type OptionNames,
} from '../options.ts'
import { checkScope, type FencingToken } from '../token.ts'

/** A value, or a promise of it. */
export type Awaitable<T> = T | Promise<T>

/**
 * How a route is guarded. Hooks are called with the framework's request; one that throws or
 * rejects ends the request with that error, the handler is not run.
 */
export interface FencingOptions<Req> {
  /**
   * `'write'` (unless told): the handler writes through the fence, check and effect in one
   * transaction. A 2xx to an unsafe method without a write, an effect or `noEffect()` is answered
   * 500. `'handler'`: the handler itself is the effect, its answer is recorded and replayed: its
   * status, its body, and of its headers Content-Type, Location, ETag, Content-Language and Link.
   */
  readonly protect?: 'write' | 'handler' | undefined
  /**
   * `'enforce'` unless told. `'report'` refuses nothing and publishes what it would have refused:
   * handlers run, writes are applied whatever the verdict, and every answer says `passed`, since
   * nothing is proved; to write without a good token it needs `jobId`. `'once-fenced'` (needs
   * `jobId`) lets unsafe requests without a token in as long as their job has no fence, for
   * writers that know nothing of it yet: `write` checks that once more in its transaction; a
   * handler that is the effect is checked before it runs only.
   */
  readonly mode?: 'enforce' | 'report' | 'once-fenced' | undefined
  /**
   * The tenant or trust domain, `''` unless told. Take it from what was authenticated, never from
   * what the client claims. A function that gives `undefined` refuses the request (`forbidden`).
   */
  readonly scope?: string | ((request: Req) => Awaitable<string | undefined>) | undefined
  /**
   * The job that the request is about, from the route. A token that names another one is refused
   * (`token_rejected`), one that names none gets it; `undefined` is `request_malformed`.
   */
  readonly jobId?: ((request: Req) => Awaitable<string | undefined>) | undefined
  /**
   * Whether the token is authentic: only `true` lets it in. One that throws refuses it too
   * (`token_rejected`), unless the error has a status of its own, which is then the answer.
   */
  readonly verifyToken?: ((token: FencingToken, request: Req) => Awaitable<boolean>) | undefined
  /** Whether unsafe requests must bear an Idempotency-Key; true unless told. */
  readonly requireOperationId?: boolean | undefined
  /**
   * What makes two requests under one key the same: SHA-256 of method, target, media type and body
   * unless told, so mount the parsers before. `false` for none. A function is called once for each
   * request with a token and a key, before the handler.
   */
  readonly fingerprint?: false | ((request: Req) => Awaitable<string>) | undefined
  /**
   * For `protect: 'handler'`: whether an answer of that status is recorded as done (`true`) or
   * proves that nothing was done (`false`), so that the operation may be tried again. Where it
   * gives `undefined`: below 400 is done; 4xx and 503 prove that nothing was; others are errors.
   * So let nothing answer 4xx or 503 for a handler that is still at work (a response time-out), nor
   * pass an error on for it: either is taken for its end.
   */
  readonly recordable?: ((status: number) => boolean | undefined) | undefined
  /** What an error (or the error status of a handler that is the effect) proves; `'unknown'`. */
  readonly errorsMean?: 'unknown' | 'not_applied' | undefined
  /** When an effect is overdue, in milliseconds; as the guard says unless told. */
  readonly deadlineMs?: number | undefined
  /**
   * See `EffectOptions`. With `protect: 'handler'` a result found out is replayed as JSON with
   * status 200, `undefined` as 204.
   */
  readonly onUnknown?: EffectOptions<unknown>['onUnknown']
  /** See `EffectOptions`. */
  readonly afterOverdue?: 'refuse' | 'proceed' | undefined
  /**
   * For `protect: 'handler'`: bodies up to this are recorded and replayed, in bytes; 1 MiB unless
   * told. A longer one is sent as it comes, with the verdict `passed`, and recorded as done
   * without it. A client that takes nothing of it for a second, past the deadline, is cut off:
   * the handler must not wait for it.
   */
  readonly maxBodyBytes?: number | undefined
}

type Defaulted =
  | 'protect'
  | 'mode'
  | 'requireOperationId'
  | 'errorsMean'
  | 'afterOverdue'
  | 'maxBodyBytes'

/** The options with their defaults in place, checked. */
export type FencingSettings<Req> = Omit<FencingOptions<Req>, Defaulted> & {
  readonly [Name in Defaulted]-?: NonNullable<FencingOptions<Req>[Name]>
}

const HOOKS = ['jobId', 'verifyToken', 'recordable'] as const
const NAMES = {
  protect: true,
  mode: true,
  scope: true,
  jobId: true,
  verifyToken: true,
  requireOperationId: true,
  fingerprint: true,
  recordable: true,
  errorsMean: true,
  deadlineMs: true,
  onUnknown: true,
  afterOverdue: true,
  maxBodyBytes: true,
} satisfies OptionNames<FencingOptions<unknown>>

/** @throws TypeError or RangeError naming the option */
export function checkFencingOptions<Req>(options: FencingOptions<Req>): FencingSettings<Req> {
  checkOptionNames(options, NAMES)
  for (const name of HOOKS) mustBeFunction(name, options[name])
  const { scope, fingerprint, onUnknown, requireOperationId = true } = options
  if (typeof scope !== 'function') checkScope(scope)
  if (fingerprint !== false) mustBeFunction('fingerprint (if not false)', fingerprint)
  if (typeof onUnknown !== 'function') checkChoice('onUnknown', onUnknown, ['refuse', 'rerun'])
  if (options.deadlineMs !== undefined) checkDuration('deadlineMs', options.deadlineMs)
  if (typeof requireOperationId !== 'boolean') {
    throw new TypeError('requireOperationId must be true or false')
  }
  const mode = checkChoice('mode', options.mode, ['enforce', 'report', 'once-fenced'])
  if (mode === 'once-fenced' && options.jobId === undefined) {
    throw new TypeError(
      "mode 'once-fenced' needs jobId: without a token nothing else names the job",
    )
  }
  return {
    ...options,
    protect: checkChoice('protect', options.protect, ['write', 'handler']),
    mode,
    requireOperationId,
    errorsMean: checkChoice('errorsMean', options.errorsMean, ['unknown', 'not_applied']),
    afterOverdue: checkChoice('afterOverdue', options.afterOverdue, ['refuse', 'proceed']),
    maxBodyBytes: checkCount('maxBodyBytes', options.maxBodyBytes ?? 2 ** 20, 0, 2 ** 30),
  }
}

function mustBeFunction(name: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'function') {
    throw new TypeError(`${name} must be a function`)
  }
}
