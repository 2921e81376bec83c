import { createHmac } from 'node:crypto'
import type { Request, Response } from 'express'
import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { StoreUnavailableError } from 'writefence'
import { fencing, fencingErrors } from 'writefence/express'
import {
  bearing,
  decisions,
  destination,
  faults,
  listening,
  plain,
  raw,
  versions,
} from './harness.ts'

type Options = NonNullable<Parameters<typeof fencing>[1]>

const both = ['write', 'handler'] as const

describe.each(versions)('%s, the way in', (_, express) => {
  describe.each(both)("protect: '%s'", (protect) => {
    function setUp(options: Options = {}, bank = destination()) {
      const fence = fencing(bank.guard, { protect, ...options })
      const app = express()
      let runs = 0
      app.use(express.json())
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

    it('lets a good token in', async () => {
      const { send, runs } = setUp()
      const answer = await send(bearing(7, 'op'))
      expect([answer.status, answer.headers['fencing-verdict']]).toEqual([200, 'applied;highest=7'])
      expect(runs()).toBe(1)
    })

    describe('what is malformed is refused, changes nothing, and does not run the handler', () => {
      const good = bearing(7, 'op')
      const cases: readonly (readonly [string, number, string, Record<string, string>])[] = [
        ['no token', 428, 'token_required', { 'Idempotency-Key': 'op' }],
        ['an empty token', 400, 'token_malformed', { ...good, 'Fencing-Token': '' }],
        ['R49: a UUID', 400, 'token_malformed', { ...good, 'Fencing-Token': 'c0ffee00-aaaa' }],
        ['R61: 007', 400, 'token_malformed', { ...good, 'Fencing-Token': '007;job="job"' }],
        ['a token without a job', 400, 'token_malformed', { ...good, 'Fencing-Token': '7' }],
        [
          'R67: a job of 10 KB',
          400,
          'token_malformed',
          { ...good, 'Fencing-Token': `7;job="${'j'.repeat(10_240)}"` },
        ],
        ['no operation id', 400, 'operation_id_required', bearing(7)],
        [
          'an empty operation id',
          400,
          'operation_id_malformed',
          { ...good, 'Idempotency-Key': '' },
        ],
        ['an open quote', 400, 'operation_id_malformed', { ...good, 'Idempotency-Key': '"op' }],
        [
          'R67: a key of 10 KB',
          400,
          'operation_id_malformed',
          { ...good, 'Idempotency-Key': 'k'.repeat(10_240) },
        ],
      ]

      it.each(cases)('%s: %i %s', async (_name, status, code, headers) => {
        const { send, runs, guard } = setUp()
        const seen = decisions()
        const answer = await send(headers)
        expect([answer.status, answer.body.code, answer.body.status]).toEqual([
          status,
          code,
          status,
        ])
        expect(answer.body.retryable).toBe(false)
        expect(answer.headers['content-type']).toBe('application/problem+json')
        expect(answer.headers['cache-control']).toBe('no-store')
        expect(answer.headers['fencing-verdict']).toBe(code)
        expect(runs()).toBe(0)
        expect(await guard.inspect('job')).toBeUndefined()
        expect(seen.map(({ verb, decision }) => [verb, decision])).toEqual([['request', code]])
      })

      it.each([
        ['Fencing-Token', 'token_malformed'],
        ['Idempotency-Key', 'operation_id_malformed'],
      ])('R62: two lines of %s, whether they agree or not', async (name, code) => {
        const { app, runs, guard } = setUp()
        const port = await listening(app)
        const { 'Fencing-Token': token, 'Idempotency-Key': key } = good
        const head = ['POST / HTTP/1.1', `Fencing-Token: ${token}`, `Idempotency-Key: ${key}`]
        for (const value of [good[name], name === 'Fencing-Token' ? '9;job="job"' : 'other']) {
          const answer = await raw(port, [...head, `${name.toLowerCase()}: ${value}`])
          expect(answer).toContain('400 Bad Request')
          expect(answer).toContain(`"code":"${code}"`)
        }
        expect(runs()).toBe(0)
        expect(await guard.inspect('job')).toBeUndefined()
      })

      it('raw bytes in a header: 400', async () => {
        const port = await listening(setUp().app)
        const head = ['POST / HTTP/1.1', 'Fencing-Token: 7;job=%"\xe9"', 'Idempotency-Key: op']
        expect(await raw(port, head)).toContain('token_malformed')
      })
    })

    it('R47: quoted and bare are one key', async () => {
      const { send, runs } = setUp()
      await send({ ...bearing(7), 'Idempotency-Key': 'op' })
      const again = await send({ ...bearing(7), 'Idempotency-Key': '"op"' })
      expect(again.headers['idempotent-replayed']).toBe('true')
      expect(runs()).toBe(protect === 'write' ? 2 : 1)
    })

    it.each(['订单-1', '🚚', 'a "b" \\c', '__proto__', 'constructor', ' '])(
      'R46, R68: the job %j is like any other',
      async (jobId) => {
        const { send, guard } = setUp({ jobId: () => jobId })
        expect((await send(bearing(7, jobId, { jobId }))).status).toBe(200)
        expect((await send(bearing(6, jobId, { jobId }))).body).toMatchObject({
          code: 'stale',
          jobId,
        })
        expect((await guard.inspect(jobId))?.highestGeneration).toBe(7)
      },
    )

    it('R97: headers that the guard sets on answers mean nothing on requests', async () => {
      const { send, runs } = setUp()
      const hostile = {
        'Fencing-Verdict': 'applied;highest=999',
        'Idempotent-Replayed': 'true',
        'Retry-After': '1',
        'Cache-Control': 'no-store',
        Fence: '1',
        'X-Http-Method-Override': 'GET',
      }
      const answer = await send({ ...hostile, ...bearing(7, 'op') })
      expect(answer.headers['fencing-verdict']).toBe('applied;highest=7')
      expect(answer.headers).not.toHaveProperty('idempotent-replayed')
      expect((await send(hostile)).body.code).toBe('token_required')
      expect(runs()).toBe(1)
    })

    describe('R101: safe requests', () => {
      it('without a token pass, and say so', async () => {
        const { send, guard, runs } = setUp()
        const seen = decisions()
        for (const method of ['get', 'head'] as const) {
          const answer = await request(setUp().app)[method]('/')
          expect([answer.status, answer.headers['fencing-verdict']]).toEqual([200, 'passed'])
        }
        expect((await send({}, 'get')).body).toEqual({ ok: true })
        expect(await guard.inspect('job')).toBeUndefined()
        expect(runs()).toBe(1)
        expect(seen.map(({ decision }) => decision)).toEqual(['passed', 'passed', 'passed'])
      })

      it('OPTIONS passes untouched, whatever it bears', async () => {
        const { app, guard, runs } = setUp()
        const answer = await request(app).options('/').set('Fencing-Token', 'nonsense')
        expect([answer.status, runs()]).toEqual([200, 1])
        await request(app).options('/').set(bearing(9))
        expect(await guard.inspect('job')).toBeUndefined()
      })

      it('with a token advance the fence first, are refused if stale, and record nothing', async () => {
        const { send, runs } = setUp()
        const fresh = await send(bearing(8, 'op'), 'get')
        expect([fresh.status, fresh.headers['fencing-verdict']]).toEqual([200, 'passed;highest=8'])
        expect((await send(bearing(7), 'get')).body.code).toBe('stale')
        expect((await send(bearing(7, 'x'))).body.code).toBe('stale')
        const first = await send(bearing(8, 'op'))
        expect(first.headers).not.toHaveProperty('idempotent-replayed')
        expect(runs()).toBe(2)
      })

      it('with a malformed token are refused', async () => {
        const answer = await setUp().send({ 'Fencing-Token': '7' }, 'get')
        expect([answer.status, answer.body.code]).toEqual([400, 'token_malformed'])
      })

      it('pass where the job is sealed', async () => {
        const { send, guard } = setUp()
        await guard.seal({ jobId: 'job', generation: 7, leaseId: 'lease-7' })
        expect((await send(bearing(7), 'get')).status).toBe(200)
      })
    })

    describe('jobId', () => {
      const jobId = (req: unknown) => (req as Request).params.id as string

      it('names the job that a token leaves out', async () => {
        const { send, guard } = setUp({ jobId })
        const headers = { 'Fencing-Token': '7;lease="l"', 'Idempotency-Key': 'op' }
        expect((await send(headers, 'post', '/jobs/a%2Fb')).status).toBe(200)
        expect((await guard.inspect('a/b'))?.highestGeneration).toBe(7)
      })

      it('a token for another job is rejected', async () => {
        const { send, runs, guard } = setUp({ jobId })
        const answer = await send(bearing(7, 'op'), 'post', '/jobs/other')
        expect([answer.status, answer.body.code]).toEqual([403, 'token_rejected'])
        expect([await guard.inspect('job'), await guard.inspect('other')]).toEqual([
          undefined,
          undefined,
        ])
        expect(runs()).toBe(0)
      })

      it('R65: an id in the path is decoded once, broken encoding is 400', async () => {
        const { app, send, guard } = setUp({ jobId })
        const token = { 'Fencing-Token': '7', 'Idempotency-Key': 'op' }
        expect((await send(token, 'post', '/jobs/a%252Fb')).status).toBe(200)
        expect(await guard.inspect('a%2Fb')).toBeDefined()
        const broken = await request(app).post('/jobs/%E0%A4%A').set(token)
        expect(broken.status).toBe(400)
        const control = await send(token, 'post', '/jobs/a%00b')
        expect([control.status, control.body.code]).toEqual([400, 'request_malformed'])
      })

      it.each([undefined, null, 7, ['a'], '', 'x'.repeat(256)])(
        'that gives %j is refused, whatever the token says',
        async (given) => {
          const { send, guard } = setUp({ jobId: () => given as never })
          const answer = await send(bearing(7, 'op'))
          expect([answer.status, answer.body.code]).toEqual([400, 'request_malformed'])
          expect(await guard.inspect('job')).toBeUndefined()
        },
      )
    })

    describe('scope', () => {
      const scope = (req: unknown) => (req as Request).get('x-tenant')

      it('keeps the fences of tenants apart', async () => {
        const { send, guard } = setUp({ scope })
        await send({ ...bearing(8, 'op'), 'X-Tenant': 'a' })
        expect((await send({ ...bearing(7, 'op'), 'X-Tenant': 'b' })).status).toBe(200)
        expect((await send({ ...bearing(7, 'op'), 'X-Tenant': 'a' })).body.code).toBe('stale')
        expect(await guard.inspect('job')).toBeUndefined()
        expect((await guard.inspect('job', 'b'))?.highestGeneration).toBe(7)
      })

      it('may be a constant', async () => {
        const { send, guard } = setUp({ scope: 'eu' })
        await send(bearing(7, 'op'))
        expect((await guard.inspect('job', 'eu'))?.highestGeneration).toBe(7)
      })

      it.each([
        [undefined, 403, 'forbidden'],
        [null, 403, 'forbidden'],
        [['a', 'b'], 400, 'request_malformed'],
        [7, 400, 'request_malformed'],
        ['a\nb', 400, 'request_malformed'],
      ])('that gives %j is a refusal, not the empty scope', async (given, status, code) => {
        const { send, guard, runs } = setUp({ scope: async () => given as never })
        const answer = await send(bearing(7, 'op'))
        expect([answer.status, answer.body.code]).toEqual([status, code])
        expect([await guard.inspect('job'), runs()]).toEqual([undefined, 0])
      })
    })

    describe('verifyToken', () => {
      const sign = (id: string) => createHmac('sha256', 'key').update(id).digest('hex')

      it('sees the whole token and the request; only what it says true to gets in', async () => {
        const verifyToken: Options['verifyToken'] = ({ jobId }, req) =>
          req.headers['x-signature'] === sign(jobId)
        const { send, guard } = setUp({ verifyToken })
        const forged = await send({ ...bearing(9, 'op'), 'X-Signature': 'no' })
        expect([forged.status, forged.body.code]).toEqual([403, 'token_rejected'])
        expect(await guard.inspect('job')).toBeUndefined()
        const headers = { ...bearing(7, 'op'), 'X-Signature': sign('job') }
        expect((await send(headers)).status).toBe(200)
      })

      it.each<[string, () => unknown]>([
        ['undefined', () => undefined],
        ['1', () => 1],
        ['a promise of false', async () => false],
        [
          'a throw',
          () => {
            throw new Error('bad signature')
          },
        ],
        ['a rejection', () => Promise.reject(new Error('bad signature'))],
      ])('%s is a rejection', async (_name, verifyToken) => {
        const { send, runs } = setUp({ verifyToken: verifyToken as never })
        const answer = await send(bearing(7, 'op'))
        expect([answer.status, answer.body.code, runs()]).toEqual([403, 'token_rejected', 0])
        expect(JSON.stringify(answer.body)).not.toContain('signature')
      })

      it('an error with a status of its own is the answer', async () => {
        const down = Object.assign(new Error('key server'), { status: 502 })
        const { send } = setUp({ verifyToken: () => Promise.reject(down) })
        expect((await send(bearing(7, 'op'))).status).toBe(502)
        const { send: another } = setUp({
          verifyToken: () => Promise.reject(new StoreUnavailableError('keys')),
        })
        expect((await another(bearing(7, 'op'))).body.code).toBe('store_unavailable')
      })
    })

    it.each<[string, Options]>([
      [
        'jobId throws',
        {
          jobId: () => {
            throw new Error('hook')
          },
        },
      ],
      ['jobId rejects', { jobId: () => Promise.reject(new Error('hook')) }],
      [
        'scope throws',
        {
          scope: () => {
            throw new Error('hook')
          },
        },
      ],
      ['scope rejects', { scope: () => Promise.reject(new Error('hook')) }],
      [
        'fingerprint throws',
        {
          fingerprint: () => {
            throw new Error('hook')
          },
        },
      ],
      ['fingerprint rejects', { fingerprint: () => Promise.reject(new Error('hook')) }],
      ['fingerprint gives no string', { fingerprint: () => 7 as never }],
    ])('R95: %s: one error, no hang, the handler does not run', async (_name, options) => {
      const { send, runs } = setUp(options)
      const answer = await send(bearing(7, 'op'))
      expect(answer.status).toBe(500)
      expect(answer.headers['fencing-verdict']).toMatch(/^passed/)
      expect(runs()).toBe(0)
    })

    it('R95: a store that is down is 503 with Retry-After, and the handler does not run', async () => {
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
    expect(errors).toEqual([expect.any(TypeError)])
    expect(String(errors[0])).toContain('mount it')
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
