import type { Request, Response } from 'express'
import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { WriteRefusedError } from 'writefence'
import { fencing, fencingErrors } from 'writefence/express'
import { bearing, decisions, destination, faults, listening, plain, versions } from './harness.ts'
import { guardedRoute } from './routes.ts'

const both = ['write', 'handler'] as const

describe.each(versions)('%s, a guard in its app', (_, express) => {
  describe.each(both)("protect: '%s'", (protect) => {
    const setUp = () => guardedRoute(express, protect)

    it('R95: a store that is down is 503 with Retry-After; no handler runs', async () => {
      const { send, db, runs } = setUp()
      db.close()
      const seen = faults()
      const answer = await send(bearing(7, 'op'))
      expect([answer.status, answer.body.code, answer.body.retryable]).toEqual([
        503,
        'store_unavailable',
        true,
      ])
      expect(answer.headers).toMatchObject({ 'retry-after': '1', 'cache-control': 'no-store' })
      expect(answer.headers['fencing-verdict']).toBe('store_unavailable')
      expect(runs()).toBe(0)
      expect(seen.map(({ fault }) => fault)).toEqual(['store_unavailable'])
    })

    it('without fencingErrors the default handler answers with status and headers', async () => {
      const { guard } = destination()
      const app = express()
      app.set('env', 'test')
      app.post('/', fencing(guard, { protect }), (_req: Request, res: Response) => res.end())
      await guard.advance({ jobId: 'job', generation: 8, leaseId: 'lease-8' })
      const stale = await request(app).post('/').set(bearing(7, 'op'))
      expect(stale.status).toBe(412)
      expect(stale.headers).toMatchObject({
        'fencing-verdict': 'stale;highest=8',
        'cache-control': 'no-store',
      })
    })

    it('the verdict is on answers that no handler makes', async () => {
      const { guard } = destination()
      const app = express()
      app.use(fencing(guard, { protect }))
      const missing = await request(app).post('/nowhere').set(bearing(7, 'op'))
      expect([missing.status, missing.headers['fencing-verdict']]).toEqual([
        404,
        'passed;highest=7',
      ])
    })

    it('mounted twice it guards once', async () => {
      const { guard } = destination()
      const fence = fencing(guard, { protect })
      const app = express()
      app.use(fence)
      let runs = 0
      app.post('/', fence, fence, async (req: Request, res: Response) => {
        runs += 1
        if (protect === 'write') await fence.of(req).write(() => 1)
        res.json({ runs })
      })
      const seen = decisions()
      expect((await request(app).post('/').set(bearing(7, 'op'))).body).toEqual({ runs: 1 })
      expect(seen.filter(({ decision }) => decision === 'applied')).toHaveLength(1)
    })

    it('several guards on one route each have their fence', async () => {
      const [a, b] = [destination(), destination()]
      const [fenceA, fenceB] = [fencing(a.guard, { protect }), fencing(b.guard, { protect })]
      const app = express()
      app.post('/', fenceA, fenceB, async (req: Request, res: Response) => {
        if (protect === 'write') {
          await fenceA.of(req).write(a.credit(1))
          await fenceB.of(req).write(b.credit(2))
        }
        res.status(201).json({ ok: true })
      })
      app.use(fencingErrors())
      await b.guard.advance({ jobId: 'job', generation: 7, leaseId: 'lease-7' })
      const answer = await request(app).post('/').set(bearing(7, 'op'))
      expect([answer.status, answer.body]).toEqual([201, { ok: true }])
      const again = await request(app).post('/').set(bearing(7, 'op'))
      expect([again.status, again.body]).toEqual([201, { ok: true }])
      expect(again.headers['idempotent-replayed']).toBe('true')
      await b.guard.advance({ jobId: 'job', generation: 8, leaseId: 'lease-8' })
      const stale = await request(app).post('/').set(bearing(7, 'other'))
      expect([stale.status, stale.body.code]).toEqual([412, 'stale'])
      expect((await a.guard.inspect('job'))?.inFlight).toBe(0)
    })
  })

  it('fencingErrors passes on what comes after the head, and what is not its own', async () => {
    const { guard } = destination()
    const passed: unknown[] = []
    const app = express()
    const late = new WriteRefusedError('stale', { jobId: 'job', generation: 7 })
    const own = new Error('own')
    app.get('/late', (_req: Request, res: Response, next) => {
      res.write('half')
      next(late)
    })
    app.get('/own', fencing(guard), (_req: Request, _res: Response, next) => next(own))
    app.use(fencingErrors())
    app.use((error: unknown, _req: Request, res: Response, _next: unknown) => {
      passed.push(error)
      res.end()
    })
    expect((await request(app).get('/late')).text).toBe('half')
    await request(app).get('/own')
    expect(passed).toEqual([late, own])
    expect(passed[0]).toBe(late)
  })

  it('fence.of a request that has not come through it is a TypeError with advice', async () => {
    const { guard } = destination()
    const fence = fencing(guard)
    const other = fencing(guard)
    const app = express()
    const errors: unknown[] = []
    app.get('/', other, (req: Request, res: Response) => {
      try {
        fence.of(req)
      } catch (error) {
        errors.push(error)
      }
      res.end()
    })
    await request(app).get('/')
    const says = 'the request has not come through this fencing(): mount it on the route,'
    expect(errors).toEqual([new TypeError(`${says} before the handler`)])
  })

  it('a safe request without a token: who asks for it gets the refusal', async () => {
    const { guard } = destination()
    const fence = fencing(guard)
    const app = express()
    app.get('/', fence, (req: Request, res: Response) =>
      res.json({ job: fence.of(req).token.jobId }),
    )
    app.use(fencingErrors())
    const answer = await request(app).get('/')
    expect([answer.status, answer.body.code]).toEqual([428, 'token_required'])
  })

  it('what earlier middleware has set stays on refusals and replays', async () => {
    const { guard } = destination()
    const app = express()
    app.use((_req: Request, res: Response, next) => {
      res.cookie('session', '1').setHeader('Access-Control-Allow-Origin', '*')
      next()
    })
    app.post('/', fencing(guard, { protect: 'handler' }), (_req, res) => {
      res.cookie('mine', '1').status(201).end()
    })
    app.use(fencingErrors())
    const kept = { 'access-control-allow-origin': '*', 'set-cookie': ['session=1; Path=/'] }
    await request(app).post('/').set(bearing(7, 'op'))
    const replay = await request(app).post('/').set(bearing(7, 'op'))
    expect([replay.status, replay.headers]).toEqual([201, expect.objectContaining(kept)])
    const refused = await request(app).post('/')
    expect([refused.status, refused.headers]).toEqual([428, expect.objectContaining(kept)])
  })

  it('a handler answer cannot claim a verdict', async () => {
    const { guard } = destination()
    const app = express()
    app.post('/', fencing(guard), (_req: Request, res: Response) => {
      res.setHeader('Idempotent-Replayed', 'true')
      res.writeHead(400, { 'Fencing-Verdict': 'applied;highest=99' }).end()
    })
    const answer = await plain(await listening(app), { headers: bearing(7, 'op') })
    expect(answer.headers['fencing-verdict']).toBe('passed;highest=7')
    expect(answer.headers).not.toHaveProperty('idempotent-replayed')
  })

  it('dangerouslyFailOpen: the handler runs while the store is down', async () => {
    for (const protect of both) {
      const bank = destination({ dangerouslyFailOpen: true })
      const fence = fencing(bank.guard, { protect })
      const app = express()
      app.post('/', fence, async (req: Request, res: Response) => {
        if (protect === 'write') await fence.of(req).effect(async () => 1)
        res.status(201).end()
      })
      bank.db.close()
      const seen = faults()
      expect((await request(app).post('/').set(bearing(7, 'op'))).status).toBe(201)
      expect(new Set(seen.map(({ fault }) => fault))).toEqual(new Set(['failed_open']))
    }
  })
})
