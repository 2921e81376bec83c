import { randomBytes } from 'node:crypto'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { NextFunction, Request, Response } from 'express'
import request from 'supertest'
import { describe, expect, it } from 'vitest'
import type { DecisionEvent } from 'writefence'
import { fencing, fencingErrors } from 'writefence/express'
import { atEnd, bearing, destination, once, signal, versions } from './harness.ts'
import type { Framework } from './routes.ts'

type Failing = (req: Request, res: Response, next: NextFunction) => unknown

const big = randomBytes(2_000_000)
const ended = () => once<DecisionEvent>('writefence:decision', ({ verb }) => verb === 'effect')

/** A route that is the effect, with no error handler but what is asked for. */
async function setUp(framework: Framework, handler: Failing, answersRefusals = false) {
  const bank = destination()
  const fence = fencing(bank.guard, { protect: 'handler' })
  const app = framework()
  app.set('env', 'test')
  app.post('/', fence, (req, res, next) => void handler(req, res, next))
  app.post('/next', fence, (_req, res) => void res.status(201).json({ next: true }))
  if (answersRefusals) app.use(fencingErrors())
  const server = http.createServer(app)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  const { port } = server.address() as AddressInfo
  const post = (generation = 7, id = 'op', path = '/') =>
    request(`http://127.0.0.1:${port}`).post(path).set(bearing(generation, id))
  /** Sends what `post()` sends, and leaves the answer alone. */
  const start = () => {
    const sent = http.request({ port, method: 'POST', agent: false, headers: bearing(7, 'op') })
    sent.on('error', () => {}).end()
    return sent
  }
  return { ...bank, server, post, start }
}

describe.each(versions)('%s, a handler that fails in the middle of its answer', (_, express) => {
  it.each<[string, boolean, Failing]>([
    [
      'throws after a piece',
      false,
      (_req, res) => {
        res.write('half')
        throw new Error('boom')
      },
    ],
    [
      'throws after a piece, before fencingErrors',
      true,
      (_req, res) => {
        res.write('half')
        throw new Error('boom')
      },
    ],
    [
      'throws after its head',
      false,
      (_req, res) => {
        res.writeHead(200)
        throw Object.assign(new Error('boom'), { status: 404 })
      },
    ],
    [
      'passes an error on, later',
      true,
      (_req, res, next) => {
        res.write('half')
        setImmediate(() => next(new Error('boom')))
      },
    ],
    [
      'throws after what is too long to be held back',
      false,
      (_req, res) => {
        res.write(big)
        res.write(big)
        throw new Error('boom')
      },
    ],
  ])('%s: cut as without a guard, and settled as unknown', async (_name, answers, handler) => {
    const { post, guard } = await setUp(express, handler, answers)
    const end = ended()
    await expect(post()).rejects.toThrow()
    expect((await end).decision).toBe('failed')
    expect(await guard.inspect('job')).toMatchObject({ inFlight: 0, overdue: 0, unknown: 1 })
    expect((await post()).status).toBe(409)
    expect((await post(8, 'other', '/next')).body).toEqual({ next: true })
  })

  it('so is one that fails when its client is gone already', async () => {
    const [began, gone, go] = [signal(), signal(), signal()]
    const { start, guard } = await setUp(express, async (req, res, next) => {
      req.socket.once('close', () => gone.fire())
      res.write('half')
      began.fire()
      await go.promise
      next(new Error('boom'))
    })
    const sent = start()
    await began.promise
    sent.destroy()
    await gone.promise
    const end = ended()
    go.fire()
    expect((await end).decision).toBe('failed')
    expect(await guard.inspect('job')).toMatchObject({ inFlight: 0, unknown: 1 })
  })
})

describe.each(versions)('%s, a connection that is cut in the middle of an answer', (_, express) => {
  type Cut = (server: http.Server, sent: http.ClientRequest, req: Request) => void

  it.each<[string, Cut]>([
    ['by a server that closes', (server) => server.closeAllConnections()],
    ['by a client that hangs up', (_server, sent) => sent.destroy()],
    ['by a client that ends its side', (_server, sent) => sent.socket?.end()],
    ['by an error of the network', (_server, _sent, req) => req.socket.destroy(new Error('reset'))],
    [
      // As where a write fails, and compression has asked before it wrote.
      'by an error of the network, right after somebody has asked',
      (_server, _sent, req) => {
        if (req.res?.headersSent) req.socket.destroy(new Error('EPIPE'))
      },
    ],
  ])('%s leaves the handler at work: what it answers is recorded', async (_name, cut) => {
    const [began, gone, go] = [signal<Request>(), signal(), signal()]
    const { start, post, server } = await setUp(express, async (req, res) => {
      // Whoever looks after an answer that breaks off asks this.
      for (const event of ['aborted', 'close']) req.once(event, () => res.headersSent)
      req.socket.once('end', () => res.headersSent).once('error', () => res.headersSent)
      req.socket.once('close', () => gone.fire())
      res.write('whole, ')
      if (!res.headersSent) return
      setImmediate(began.fire, req)
      await go.promise
      res.end('in the end')
    })
    const sent = start()
    cut(server, sent, await began.promise)
    await gone.promise
    const end = ended()
    go.fire()
    expect((await end).decision).toBe('applied')
    const again = await post()
    expect([again.status, again.text]).toEqual([200, 'whole, in the end'])
  })
})
