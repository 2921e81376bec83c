import type { IncomingMessage, ServerResponse } from 'node:http'
import type { StoreMode } from '../guard/fence-store.ts'
import type { WriteGuard } from '../guard/write-guard.ts'
import { type FenceServiceOptions, fenceService } from '../http/fence-service.ts'
import { parseJson, readJson } from '../http/json-body.ts'
import { type LeaseServiceOptions, leaseService } from '../http/lease-service.ts'
import type { Service, ServiceRequest } from '../http/service.ts'
import type { LeaseStore } from '../lease/lease-store.ts'
import { bodyOf, type ExpressRequest } from './request.ts'
import { sendUnlessSent } from './response.ts'

/** A middleware of Express that answers its own routes and passes on all others. */
export type Router = (
  req: IncomingMessage,
  res: ServerResponse,
  next: (error?: unknown) => void,
) => void

/**
 * The lease service below the path where it is mounted: `app.use(leaseRoutes(store, …))`. It parses
 * its own JSON, up to 64 KiB, and takes what a parser before it has made of the body.
 * @throws TypeError where there is no store, an unknown option, or no `authorize`; `'none'` lets
 * everybody call everything
 */
export function leaseRoutes<Req extends IncomingMessage = ExpressRequest>(
  store: LeaseStore,
  options: LeaseServiceOptions<Req>,
): Router {
  return router(leaseService(store, options))
}

/**
 * The fence service below the path where it is mounted: `app.use(fenceRoutes(guard, …))`. Give it
 * the `scope` that the routes have which write.
 * @throws TypeError where there is no guard, an unknown option, or no `authorize`; `'none'` lets
 * everybody call everything
 */
export function fenceRoutes<
  Tx,
  Mode extends StoreMode,
  Req extends IncomingMessage = ExpressRequest,
>(guard: WriteGuard<Tx, Mode>, options: FenceServiceOptions<Req>): Router {
  return router(fenceService(guard, options))
}

function router<Req extends IncomingMessage>(service: Service<Req>): Router {
  return (req, res, next) => {
    service(requestOf(req as Req & ExpressRequest))
      .then((answer) => {
        if (answer === undefined) next()
        else sendUnlessSent(res, answer)
      })
      .catch(next)
  }
}

function requestOf<Req extends IncomingMessage>(req: Req & ExpressRequest): ServiceRequest<Req> {
  return {
    request: req,
    method: req.method ?? 'GET',
    target: req.url ?? '/',
    rawHeaders: req.rawHeaders,
    async json() {
      const body = bodyOf(req)
      switch (body.kind) {
        case 'none':
          return undefined
        case 'parsed':
          return body.value
        case 'raw':
          return parseJson(Buffer.from(body.data as string))
        case 'unread':
          // Leaving off must not destroy the request: the refusal goes out over its socket, and
          // what runs later (a log) looks at it.
          return readJson(req.iterator({ destroyOnReturn: false }))
      }
    },
  }
}
