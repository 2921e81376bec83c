import http from 'node:http'
import type { Request, Response } from 'express'
import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { fenceRoutes, leaseRoutes } from 'writefence/express'
import { SqliteLeaseStore } from 'writefence/sqlite'
import { atEnd, destination, listening, plain, raw, versions } from './harness.ts'

const claim = { owner: 'w-1', ttlMs: 30_000, leaseId: 'f00d' }
const key = { owner: 'w-1', generation: 1, leaseId: 'f00d' }

describe('the routers', () => {
  it.each([undefined, {}, { authorize: undefined }, { authorize: true }, { authorize: 'all' }])(
    'are not made without a decision on who may call (%j)',
    (options) => {
      const { guard, db } = destination()
      const store = new SqliteLeaseStore(db)
      expect(() => leaseRoutes(store, options as never)).toThrow(TypeError)
      expect(() => leaseRoutes(store, options as never)).toThrow("'none'")
      expect(() => fenceRoutes(guard, options as never)).toThrow("'none'")
    },
  )
})

describe.each(versions)('%s, leaseRoutes', (_, express) => {
  function setUp(options: Parameters<typeof leaseRoutes>[1] = { authorize: 'none' }) {
    const { db } = destination()
    let now = 1_000_000
    const store = new SqliteLeaseStore(db, { now: () => now })
    const app = express()
    app.use(leaseRoutes(store, options))
    app.use((_req: Request, res: Response) => res.status(404).json({ mine: true }))
    app.use((error: Error, _req: Request, res: Response, _next: unknown) => {
      res.status(500).json({ failed: error.message })
    })
    const post = (path: string, body?: object) => request(app).post(path).send(body)
    return { store, db, app, post, pass: (ms: number) => (now += ms) }
  }

  it('a claim without a leaseId is given one, and not recognised when it comes again', async () => {
    const { post } = setUp()
    const claimed = await post('/leases/job/claim', { owner: 'w-1', ttlMs: 500 })
    expect([claimed.status, claimed.body.lease.leaseId]).toEqual([
      201,
      expect.stringMatching(/^[0-9a-f]{32}$/),
    ])
    expect((await post('/leases/job/claim', { owner: 'w-1', ttlMs: 500 })).body.status).toBe('held')
  })

  it('claims, renews, completes and tells, each with its status', async () => {
    const { app, post } = setUp()
    const claimed = await post('/leases/a%2Fb/claim', claim)
    expect(claimed.status).toBe(201)
    expect(claimed.headers).toMatchObject({ 'cache-control': 'no-store' })
    expect(claimed.body).toMatchObject({
      status: 'claimed',
      lease: { ...claim, jobId: 'a/b', generation: 1 },
    })
    const held = await post('/leases/a%2Fb/claim', { ...claim, owner: 'w-2', leaseId: 'beef' })
    expect([held.status, held.body.status, held.headers['retry-after']]).toEqual([
      409,
      'held',
      '30',
    ])
    expect(JSON.stringify(held.body)).not.toContain('f00d')
    const renewed = await post('/leases/a%2Fb/renew', { ...key, ttlMs: 500 })
    expect([renewed.status, renewed.body.status]).toEqual([200, 'renewed'])
    const lost = await post('/leases/a%2Fb/complete', { ...key, generation: 2 })
    expect([lost.status, lost.body.status]).toEqual([412, 'lost'])
    expect((await post('/leases/a%2Fb/complete', key)).body).toEqual({
      status: 'completed',
      lapsed: false,
    })
    const completed = await post('/leases/a%2Fb/claim', claim)
    expect([completed.status, completed.body.status]).toEqual([409, 'completed'])
    const read = await request(app).get('/leases/a%2Fb')
    expect([read.status, read.body.status]).toEqual([200, 'completed'])
    expect((await request(app).get('/leases/none')).status).toBe(404)
  })

  it('a wait of less than a second is told as one', async () => {
    const { post } = setUp()
    await post('/leases/job/claim', { ...claim, ttlMs: 20 })
    const held = await post('/leases/job/claim', { ...claim, owner: 'w-2', leaseId: 'beef' })
    expect(held.headers['retry-after']).toBe('1')
  })

  it('takes a lease back from who gives it back', async () => {
    const { post, store } = setUp()
    await post('/leases/job/claim', claim)
    const released = await post('/leases/job/release', key)
    expect([released.status, released.body]).toEqual([200, { status: 'released' }])
    expect(await store.get('job')).toMatchObject({ status: 'released', generation: 1 })
  })

  it('reads no body of a request that only asks', async () => {
    const { app, post } = setUp()
    await post('/leases/job/claim', claim)
    const answer = await raw(await listening(app), ['GET /leases/job HTTP/1.1'], '{')
    expect(answer).toContain('200 OK')
  })

  it('carries the calls of operators', async () => {
    const { app, post } = setUp()
    await post('/leases/job/claim', claim)
    expect((await post('/leases/job/force-release')).body.status).toBe('released')
    expect((await post('/leases/job/raise', { atLeast: 9 })).body.generation).toBe(9)
    expect((await post('/leases/job/reopen')).status).toBe(200)
    expect((await request(app).get('/leases?status=released')).body.leases).toHaveLength(1)
    expect((await post('/lease-maintenance/prune', { olderThanMs: 0 })).status).toBe(200)
  })

  it('works below a path', async () => {
    const { db } = destination()
    const app = express()
    app.use('/api/v1', leaseRoutes(new SqliteLeaseStore(db), { authorize: 'none' }))
    expect((await request(app).post('/api/v1/leases/job/claim').send(claim)).status).toBe(201)
    expect((await request(app).post('/leases/job/claim').send(claim)).status).toBe(404)
  })

  it.each([
    ['not JSON', '{'],
    ['an array', '[]'],
    ['a string', '"x"'],
    ['nothing', ''],
    ['no UTF-8', JSON.stringify({ ...claim, owner: '\xff' })],
  ])('a body that is %s is 400, and changes nothing', async (_name, body) => {
    const { app, store } = setUp()
    const answer = await raw(await listening(app), ['POST /leases/job/claim HTTP/1.1'], body)
    expect(answer).toContain('400 Bad Request')
    expect(answer).toContain('application/problem+json')
    expect(answer).toContain('"code":"request_malformed"')
    expect(await store.get('job')).toBeUndefined()
  })

  it('a body over 64 KiB is refused while it is still coming, and that is heard', async () => {
    const { app, store } = setUp()
    const port = await listening(app)
    const path = '/leases/job/claim'
    const headers = { 'Content-Length': 10_000_000 }
    const req = http.request({ port, method: 'POST', path, headers, agent: false })
    atEnd(() => req.destroy())
    const answer = new Promise<http.IncomingMessage>((resolve, reject) => {
      req.once('response', resolve).once('error', reject)
    })
    req.write(JSON.stringify({ ...claim, pad: 'x'.repeat(70_000) }))
    expect((await answer).statusCode).toBe(400)
    expect(await store.get('job')).toBeUndefined()
  })

  it('a body of 64 KiB is read', async () => {
    const pad = 65_536 - JSON.stringify({ ...claim, pad: '' }).length
    const body = { ...claim, pad: 'x'.repeat(pad) }
    expect((await setUp().post('/leases/job/claim', body)).status).toBe(201)
    const over = await setUp().post('/leases/job/claim', { ...claim, pad: `x${body.pad}` })
    expect([over.status, over.body.detail]).toEqual([400, expect.stringContaining('longer')])
  })

  it('a chunked body without a chunk is none', async () => {
    const { app, post } = setUp()
    await post('/leases/job/claim', claim)
    const headers = { 'Transfer-Encoding': 'chunked' }
    const path = '/leases/job/force-release'
    expect((await plain(await listening(app), { path, headers })).status).toBe(200)
  })

  it.each([
    [{ ...claim, ttlMs: 0 }],
    [{ ...claim, ttlMs: '30s' }],
    [{ ...claim, owner: '' }],
    [{ ...claim, owner: 7 }],
    [{ ...claim, leaseId: null }],
    [{ ...claim, jobId: 'other' }],
  ])('R17: the claim %j is 400', async (body) => {
    const { post, store } = setUp()
    const answer = await post('/leases/job/claim', body)
    expect([answer.status, answer.body.code]).toEqual([400, 'request_malformed'])
    expect(await store.get('job')).toBeUndefined()
  })

  it.each([
    '/leases/%E0%A4%A/claim',
    '/leases/a%00b/claim',
    `/leases/${'j'.repeat(256)}/claim`,
    '/leases//claim',
  ])('R65, R67: %s is 400', async (path) => {
    const answer = await setUp().post(path, claim)
    expect([answer.status, answer.body.code]).toEqual([400, 'request_malformed'])
  })

  it('takes what a parser before it has read', async () => {
    const { db } = destination()
    const store = new SqliteLeaseStore(db)
    for (const [index, parser] of [
      express.json(),
      express.text({ type: '*/*' }),
      express.raw({ type: '*/*' }),
    ].entries()) {
      const app = express()
      app.use(parser, leaseRoutes(store, { authorize: 'none' }))
      const answer = await request(app).post(`/leases/job-${index}/claim`).send(claim)
      expect([answer.status, index]).toEqual([201, index])
    }
  })

  it('leaves the requests of others alone, their bodies too', async () => {
    const { db } = destination()
    const app = express()
    app.use(leaseRoutes(new SqliteLeaseStore(db), { authorize: 'none' }))
    app.use(express.json(), (req: Request, res: Response) => res.json({ mine: req.body ?? null }))
    for (const path of ['/leases/job/notes', '/other', '/leasesx/job/claim', '/leases/a/claim/x']) {
      const answer = await request(app).post(path).send({ a: 1 })
      expect([path, answer.body]).toEqual([path, { mine: { a: 1 } }])
    }
    expect((await request(app).put('/leases/job/claim').send({ a: 1 })).body).toEqual({
      mine: { a: 1 },
    })
  })

  it('authorize sees who calls what, before anything is done', async () => {
    const seen: unknown[] = []
    const { post, store } = setUp({
      authorize: async (req, call) => {
        seen.push([req.headers['x-user'], call])
        return false
      },
    })
    const answer = await post('/leases/job/claim', claim).set('X-User', 'eve')
    expect([answer.status, answer.body.code]).toEqual([403, 'forbidden'])
    expect(seen).toEqual([['eve', { verb: 'claim', jobId: 'job', ...claim }]])
    expect(await store.get('job')).toBeUndefined()
  })

  it.each<[string, () => unknown, number]>([
    ['gives undefined', () => undefined, 403],
    ['gives 1', () => 1, 403],
    [
      'throws',
      () => {
        throw new Error('secret')
      },
      403,
    ],
    ['rejects', () => Promise.reject(new Error('secret')), 403],
    [
      'rejects with a status',
      () => Promise.reject(Object.assign(new Error('down'), { status: 502 })),
      500,
    ],
  ])('authorize that %s allows nothing', async (_name, authorize, status) => {
    const { post, store } = setUp({ authorize: authorize as never })
    const answer = await post('/leases/job/claim', claim)
    expect(answer.status).toBe(status)
    expect(answer.text).not.toContain('secret')
    expect(await store.get('job')).toBeUndefined()
  })

  it('a store that is down is 503 with Retry-After', async () => {
    const { post, db } = setUp()
    db.close()
    const answer = await post('/leases/job/claim', claim)
    expect([answer.status, answer.body.code]).toEqual([503, 'store_unavailable'])
    expect(answer.headers['retry-after']).toBe('1')
  })

  it('a client that hangs up in the middle of its body does no harm', async () => {
    const { app, store } = setUp()
    const port = await listening(app)
    const { connect } = await import('node:net')
    await new Promise<void>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.write('POST /leases/job/claim HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{')
        socket.destroy()
      })
      socket.once('close', () => resolve())
    })
    expect((await plain(port, { method: 'GET', path: '/leases/job' })).status).toBe(404)
    expect(await store.get('job')).toBeUndefined()
  })
})
