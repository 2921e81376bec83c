/** The guard as a middleware of Express 4.21+ and 5, and the services as routers. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { StoreMode } from '../guard/fence-store.ts'
import type { WriteGuard } from '../guard/write-guard.ts'
import type { Exchange } from '../http/exchange.ts'
import { Fencing } from '../http/fencing.ts'
import type { FencingOptions } from '../http/fencing-options.ts'
import { problemAnswer } from '../http/http-error.ts'
import type { RequestFence } from '../http/request-fence.ts'
import { checkOptionNames } from '../options.ts'
import { ResponseHold } from './capture.ts'
import { bodyOf, type ExpressRequest } from './request.ts'
import { beforeHead, send, sendUnlessSent } from './response.ts'

export type { FenceServiceCall, FenceServiceOptions } from '../http/fence-service.ts'
export type { Awaitable, FencingOptions } from '../http/fencing-options.ts'
export type { LeaseServiceOptions } from '../http/lease-service.ts'
export type { RecordedAnswer } from '../http/recording.ts'
export type { RequestFence } from '../http/request-fence.ts'
export type { Authorize } from '../http/service.ts'
export { corsHeaders } from '../wire/headers.ts'
export type { LeaseCall } from '../wire/lease-messages.ts'
export { fenceRoutes, leaseRoutes } from './routers.ts'
export type { ExpressRequest }

/** The rest of the chain, as Express hands it to a middleware. */
export type Next = (error?: unknown) => void

/** A middleware that guards the routes behind it. */
export interface FencingMiddleware<Tx, Mode extends StoreMode> {
  (req: IncomingMessage, res: ServerResponse, next: Next): void
  /**
   * The fence of a request that has come through this middleware, typed by its guard; `req.fence`
   * is the same of the guard that was mounted last.
   * @throws TypeError where it has not
   */
  of(req: object): RequestFence<Tx, Mode>
}

/**
 * Guards a route: reads Fencing-Token and Idempotency-Key, refuses what is stale, and puts a
 * Fencing-Verdict on every answer. Refusals are passed to the error handlers with `status` and
 * `headers`: {@link fencingErrors} makes problem answers of them. Mount it after the body parsers.
 * @throws TypeError or RangeError naming the option that is not valid
 */
export function fencing<Tx, Mode extends StoreMode, Req extends IncomingMessage = ExpressRequest>(
  guard: WriteGuard<Tx, Mode>,
  options: FencingOptions<Req> = {},
): FencingMiddleware<Tx, Mode> {
  const fences = new Fencing<Tx, Mode, Req>(guard, options)
  const middleware = (req: IncomingMessage, res: ServerResponse, next: Next): void => {
    void fences.handle(exchangeOf(req as Req & ExpressRequest, res, next))
  }
  return Object.assign(middleware, { of: (req: object) => fences.of(req) })
}

/**
 * The error handler that answers refusals as problem details (RFC 9457). Mount it after the routes;
 * errors that are not the guard's, or that come after the head was sent, are passed on. There are
 * no options.
 * @throws TypeError for any: `app.use(fencingErrors)`, not called, would answer nothing
 */
export function fencingErrors(
  options: Readonly<Record<string, never>> = {},
): (error: unknown, req: IncomingMessage, res: ServerResponse, next: Next) => void {
  checkOptionNames(options, {})
  return (error, _req, res, next) => {
    const answer = res.headersSent ? undefined : problemAnswer(error)
    if (answer === undefined) next(error)
    else send(res, answer, res.end)
  }
}

function exchangeOf<Req extends IncomingMessage>(
  req: Req & ExpressRequest,
  res: ServerResponse,
  next: Next,
): Exchange<Req> {
  return {
    request: req,
    method: req.method ?? 'GET',
    target: req.originalUrl ?? req.url ?? '/',
    rawHeaders: req.rawHeaders,
    contentType: req.headers['content-type'],
    body: () => bodyOf(req),
    beforeHead: (hook) => beforeHead(res, hook),
    isAnswered: () => res.headersSent,
    hold: (maxBodyBytes) => new ResponseHold(res, maxBodyBytes),
    answer: (answer) => sendUnlessSent(res, answer),
    proceed: () => next(),
    fail: (error) => next(error),
  }
}
