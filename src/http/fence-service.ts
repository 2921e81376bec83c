/** The fence service: what a new holder calls first, and an old one last, at a destination. */

import { RequestRefusedError } from '../errors.ts'
import type { FenceState } from '../guard/fence-state.ts'
import type { StoreMode } from '../guard/fence-store.ts'
import type { WriteGuard } from '../guard/write-guard.ts'
import { checkMethods, type OptionNames } from '../options.ts'
import type { FencingToken } from '../token.ts'
import { type FenceCall, readFenceCall } from '../wire/fence-messages.ts'
import {
  FENCING_TOKEN,
  FENCING_VERDICT,
  formatFencingVerdict,
  onlyHeader,
  parseFencingToken,
} from '../wire/headers.ts'
import type { Answer } from './exchange.ts'
import type { FencingOptions } from './fencing-options.ts'
import { scopeOf, tokenFor } from './identify.ts'
import { type Authorize, answering, checkAuthorize, jsonAnswer, type Service } from './service.ts'

/** A call of the fence service, for `authorize`. */
export interface FenceServiceCall extends FenceCall {
  readonly scope: string
  /** With `advance` and `seal`: whoever may use a job's token may move its fence. */
  readonly token?: FencingToken | undefined
}

/** How the fence service is set up. */
export interface FenceServiceOptions<Req> extends Pick<FencingOptions<Req>, 'scope'> {
  /** Who may make which call: `advance`, `seal` and `inspect`. Check the token here if need be. */
  readonly authorize: Authorize<Req, FenceServiceCall>
}

const NAMES = { authorize: true, scope: true } satisfies OptionNames<FenceServiceOptions<unknown>>
const GUARD_METHODS = ['advance', 'seal', 'inspect'] as const

/**
 * `POST /fences/:jobId/advance | seal` with a Fencing-Token, `GET /fences/:jobId`: 200 with the
 * state of the fence as JSON, 404 where none is known; refusals are problems.
 * @throws TypeError where there is no guard or no `authorize`, and for an unknown option
 */
export function fenceService<Tx, Mode extends StoreMode, Req>(
  guard: WriteGuard<Tx, Mode>,
  options: FenceServiceOptions<Req>,
): Service<Req> {
  checkMethods('fenceRoutes needs a WriteGuard', guard, GUARD_METHODS)
  const authorize = checkAuthorize(options, NAMES)
  return ({ request, method, target, rawHeaders }) =>
    answering(async () => {
      const call = readFenceCall({ method, target })
      if (call === undefined) return undefined
      const token = call.verb === 'inspect' ? undefined : readToken(rawHeaders, call.jobId)
      const scope = await scopeOf(options.scope, request)
      await authorize(request, { ...call, scope, token })
      return stateAnswer(await carryOut(guard, call, scope, token))
    })
}

/** With a verdict, as on every answer of a place that checks tokens. */
function stateAnswer(state: FenceState | undefined): Answer {
  if (state === undefined) return jsonAnswer({ status: 404, body: { status: 'unknown_job' } })
  const { highestGeneration } = state
  const answer = jsonAnswer({ status: 200, body: state })
  const verdict = formatFencingVerdict({ word: 'passed', highestGeneration })
  return { ...answer, headers: { ...answer.headers, [FENCING_VERDICT]: verdict } }
}

function carryOut<Tx, Mode extends StoreMode>(
  guard: WriteGuard<Tx, Mode>,
  { verb, jobId }: FenceCall,
  scope: string,
  token: FencingToken | undefined,
): Promise<FenceState | undefined> {
  if (token === undefined) return guard.inspect(jobId, scope)
  return verb === 'seal' ? guard.seal(token, scope) : guard.advance(token, scope)
}

function readToken(rawHeaders: readonly string[], jobId: string): FencingToken {
  const line = onlyHeader(rawHeaders, FENCING_TOKEN, 'token_malformed')
  if (line === undefined) throw new RequestRefusedError('token_required', undefined, { jobId })
  return tokenFor(jobId, parseFencingToken(line))
}
