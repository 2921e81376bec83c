import http from 'node:http'
import type { Database } from 'better-sqlite3'
import type express from 'express'
import type { Request, RequestHandler, Response } from 'express'
import request from 'supertest'
import { fencing, fencingErrors, type RequestFence } from 'writefence/express'
import { bearing, type Destination, destination, listening } from './harness.ts'

export type Framework = typeof express
export type Options = NonNullable<Parameters<typeof fencing>[1]>
export type Handler = (req: Request, res: Response) => unknown
export type Writer = (bound: RequestFence<Database, 'sync'>, req: Request, res: Response) => unknown

/** A route of either way to protect that does what is right there; the job may be in its path. */
export function guardedRoute(
  framework: Framework,
  protect: 'write' | 'handler',
  options: Options = {},
  bank = destination(),
) {
  const fence = fencing(bank.guard, { protect, ...options })
  const app = framework()
  let runs = 0
  app.use(framework.json())
  app.all(['/', '/jobs/:id'], fence, (req: Request, res: Response, next) => {
    runs += 1
    const bound = fence.of(req)
    const writes = protect === 'write' && req.method === 'POST' && bound.fenced
    const write = writes ? bound.write(() => 1) : undefined
    Promise.resolve(write).then(() => {
      bound.noEffect()
      res.json({ ok: true })
    }, next)
  })
  app.use(fencingErrors())
  const send = (headers: Record<string, string>, method: 'post' | 'get' = 'post', path = '/') =>
    request(app)[method](path).set(headers)
  return { ...bank, app, fence, send, runs: () => runs }
}

/** A route whose handler writes through the fence: a credit, unless told. */
export function writeRoute(
  framework: Framework,
  writer?: Writer,
  options: Options = {},
  bank = destination(),
) {
  const fence = fencing(bank.guard, options)
  const app = framework()
  let runs = 0
  app.use(framework.json())
  const credit: Writer = async (bound, req, res) => {
    const { result } = await bound.write(bank.credit(req.body.amount))
    res.status(201).json(result)
  }
  app.all('/credits', fence, (req, res, next) => {
    runs += 1
    new Promise((resolve) => resolve((writer ?? credit)(fence.of(req), req, res))).catch(next)
  })
  app.use(fencingErrors())
  const send = (generation: number, id: string | undefined, amount = 5) =>
    request(app).post('/credits').set(bearing(generation, id)).send({ amount })
  return { ...bank, app, fence, send, runs: () => runs }
}

/** A route whose handler is the effect; `/bare` is the same without a guard. */
export function effectRoute<Bank extends Pick<Destination, 'guard'> = Destination>(
  framework: Framework,
  handler: Handler,
  options: Options = {},
  bank = destination() as unknown as Bank,
  middleware: readonly RequestHandler[] = [],
) {
  const fence = fencing(bank.guard, { protect: 'handler', ...options })
  const app = framework()
  let runs = 0
  app.use(framework.json(), ...middleware)
  const run = (req: Request, res: Response, next: (error?: unknown) => void) => {
    new Promise((resolve) => resolve(handler(req, res))).catch(next)
  }
  app.post('/bare', run)
  app.post('/', fence, (req, res, next) => {
    runs += 1
    run(req, res, next)
  })
  app.use(fencingErrors())
  app.use((error: { status?: number }, _req: Request, res: Response, _next: unknown) => {
    if (res.headersSent) return
    const inRange = res.statusCode >= 400 && res.statusCode < 600
    res.status(error.status ?? (inRange ? res.statusCode : 500)).json({ failed: true })
  })
  const post = (generation = 7, id = 'op', body: object = {}, path = '/') =>
    request(app).post(path).set(bearing(generation, id)).redirects(0).buffer(true).send(body)
  /** Sends what `post()` sends; `hangUp` cuts the connection. */
  const start = async (headers: Record<string, string> = {}) => {
    const port = await listening(app)
    const sent = http.request({ port, method: 'POST', agent: false, path: '/' })
    for (const [name, value] of Object.entries({ ...bearing(7, 'op'), ...headers })) {
      sent.setHeader(name, value)
    }
    sent.setHeader('Content-Type', 'application/json')
    sent.on('error', () => {})
    sent.end('{}')
    return { sent, hangUp: () => sent.destroy() }
  }
  return { ...bank, app, fence, post, start, runs: () => runs }
}
