import type { Request, Response } from 'express'
import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { fencing, fencingErrors } from 'writefence/express'
import { bearing, decisions, destination, listening, plain, versions } from './harness.ts'

type Options = NonNullable<Parameters<typeof fencing>[1]>

describe.each(versions)('%s, R103: the body of a request', (_, express) => {
  const parsers = {
    none: () => [],
    json: () => [express.json({ limit: 1000 })],
    kept: () => [
      express.json({
        verify: (req, _res, bytes) => {
          Object.assign(req, { rawBody: bytes })
        },
      }),
    ],
    text: () => [express.text({ type: '*/*' })],
    raw: () => [express.raw({ type: '*/*' })],
    form: () => [express.urlencoded({ extended: true })],
  }

  function setUp(
    protect: 'write' | 'handler',
    before: keyof typeof parsers,
    after: keyof typeof parsers = 'none',
    options: Options = {},
  ) {
    const { guard } = destination()
    const fence = fencing(guard, { protect, ...options })
    const app = express()
    const seen: unknown[] = []
    const chain = [...parsers[before](), fence, ...parsers[after]()]
    app.post('/', ...chain, async (req: Request, res: Response) => {
      seen.push(Buffer.isBuffer(req.body) ? req.body.toString() : req.body)
      if (protect === 'write') {
        try {
          await fence.of(req).write(() => 1)
        } catch (error) {
          const { status, code, message } = error as Error & { status: number; code: string }
          res.status(status).json({ code, detail: message })
          return
        }
      }
      res.status(201).json({ ok: true })
    })
    app.use(fencingErrors())
    const send = (body: string, type = 'application/json', id = 'op') =>
      request(app).post('/').set(bearing(7, id)).set('Content-Type', type).send(body)
    return { send, seen, guard, app }
  }

  const cases: readonly (readonly [
    'write' | 'handler',
    keyof typeof parsers,
    keyof typeof parsers,
  ])[] = [
    ['write', 'json', 'none'],
    ['write', 'none', 'json'],
    ['handler', 'json', 'none'],
  ]

  it.each(cases)(
    "protect '%s', parsers before: %s, after: %s: is told from another",
    async (protect, before, after) => {
      const { send, seen } = setUp(protect, before, after)
      expect((await send('{"a":1,"b":2}')).status).toBe(201)
      expect((await send('{ "b": 2, "a": 1 }')).headers['idempotent-replayed']).toBe('true')
      expect((await send('{"a":1,"b":3}')).status).toBe(422)
      expect(seen[0]).toEqual({ a: 1, b: 2 })
    },
  )

  it.each([
    ['kept', '{"a":1}', '{"a": 1}', 'application/json'],
    ['text', 'a', 'b', 'text/plain'],
    ['raw', 'a', 'b', 'application/octet-stream'],
    ['form', 'a=1', 'a=2', 'application/x-www-form-urlencoded'],
  ] as const)('%s: is told from another', async (parser, one, other, type) => {
    const { send } = setUp('handler', parser)
    expect((await send(one, type)).status).toBe(201)
    expect((await send(one, type)).headers['idempotent-replayed']).toBe('true')
    expect((await send(other, type)).status).toBe(422)
  })

  it.each(['none', 'json'] as const)('an empty one needs no parser (%s)', async (parser) => {
    const { send } = setUp('handler', parser)
    expect((await send('')).status).toBe(201)
    expect((await send('')).headers['idempotent-replayed']).toBe('true')
  })

  it.each([
    ['handler', 'none', 'json', '{"a":1}', 'application/json'],
    ['handler', 'none', 'none', '{"a":1}', 'application/json'],
    ['write', 'none', 'none', '{"a":1}', 'application/json'],
    ['handler', 'json', 'none', '<a/>', 'application/xml'],
    ['write', 'json', 'none', '<a/>', 'application/xml'],
    ['handler', 'json', 'none', '--x--', 'multipart/form-data; boundary=x'],
    ['write', 'json', 'none', '--x--', 'multipart/form-data; boundary=x'],
  ] as const)(
    "protect '%s', parsers before: %s, after: %s: one that nobody has read is refused with advice",
    async (protect, before, after, body, type) => {
      const { send, guard } = setUp(protect, before, after)
      const answer = await send(body, type)
      expect([answer.status, answer.body.code]).toEqual([400, 'request_malformed'])
      expect(answer.body.detail).toContain('before the guard')
      expect((await guard.inspect('job'))?.inFlight ?? 0).toBe(0)
      const empty = await send('', type)
      expect(empty.status).toBe(201)
    },
  )

  it('of a handler that is the effect is missed at the door, which is told', async () => {
    const { send, seen } = setUp('handler', 'none')
    const events = decisions()
    await send('{"a":1}')
    expect(events.map(({ verb, decision }) => [verb, decision])).toEqual([
      ['request', 'request_malformed'],
    ])
    expect(seen).toEqual([])
  })

  it('fingerprint: false asks for none, and any body may come', async () => {
    const { send, seen } = setUp('handler', 'none', 'json', { fingerprint: false })
    expect((await send('{"a":1}')).status).toBe(201)
    expect((await send('{"a":2}')).headers['idempotent-replayed']).toBe('true')
    expect(seen).toEqual([{ a: 1 }])
  })

  it('without an operation id there is nothing to compare: any body may come', async () => {
    const { app } = setUp('handler', 'none', 'json', { requireOperationId: false })
    const answer = await request(app).post('/').set(bearing(7)).send({ a: 1 })
    expect(answer.status).toBe(201)
  })

  it('a fingerprint of the user’s own decides', async () => {
    const fingerprint = async (req: unknown) => String((req as Request).get('x-print'))
    const { send } = setUp('handler', 'none', 'none', { fingerprint })
    await send('a').set('X-Print', '1')
    expect((await send('b').set('X-Print', '1')).headers['idempotent-replayed']).toBe('true')
    expect((await send('a').set('X-Print', '2')).status).toBe(422)
  })

  it('a parser that refuses leaves nothing in flight, before the guard and after it', async () => {
    const big = JSON.stringify({ a: 'x'.repeat(2000) })
    const before = setUp('handler', 'json')
    expect((await before.send(big)).status).toBe(413)
    const unseen = await before.send('{')
    expect([unseen.status, unseen.headers['fencing-verdict']]).toEqual([400, undefined])
    expect(await before.guard.inspect('job')).toBeUndefined()
    const after = setUp('handler', 'none', 'json', { fingerprint: false })
    expect((await after.send(big)).status).toBe(413)
    expect((await after.guard.inspect('job'))?.inFlight).toBe(0)
    expect((await after.send('{"a":1}')).status).toBe(201)
    const written = setUp('write', 'none', 'json')
    const passed = await written.send(big)
    expect([passed.status, passed.headers['fencing-verdict']]).toEqual([413, 'passed;highest=7'])
    expect((await written.send('{"a":1}')).status).toBe(201)
  })

  it('one that comes in chunks, of a length that nobody knows, is one', async () => {
    const unread = setUp('handler', 'none')
    const headers = { ...bearing(7, 'op'), 'Transfer-Encoding': 'chunked' }
    const sent = { headers: { ...headers, 'Content-Type': 'application/json' }, body: '{"a":1}' }
    expect((await plain(await listening(unread.app), sent)).status).toBe(400)
    const port = await listening(setUp('handler', 'json').app)
    expect((await plain(port, sent)).status).toBe(201)
    expect((await plain(port, { ...sent, body: '{"a":2}' })).status).toBe(422)
  })

  it('nested too deeply is 400, not a stack overflow', async () => {
    const { guard } = destination()
    const app = express()
    app.use(express.json({ limit: '1mb' }))
    app.post('/', fencing(guard, { protect: 'handler' }), (_req, res) => res.end())
    app.use(fencingErrors())
    const body = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
    const answer = await request(app)
      .post('/')
      .set(bearing(7, 'op'))
      .set('Content-Type', 'application/json')
      .send(body)
    expect([answer.status, answer.body.code]).toEqual([400, 'request_malformed'])
  })

  it('a handler that changes the parsed body does not change what it is compared by', async () => {
    const { guard } = destination()
    const fence = fencing(guard)
    const app = express()
    app.use(express.json())
    let salt = 0
    app.post('/', fence, async (req: Request, res: Response) => {
      req.body.salt = salt++
      res.json(await fence.of(req).write(() => 1))
    })
    app.use(fencingErrors())
    const send = () => request(app).post('/').set(bearing(7, 'op')).send({ a: 1 })
    expect((await send()).body.status).toBe('applied')
    expect((await send()).body.status).toBe('replayed')
  })

  it('R103: below a mount path, the whole target counts', async () => {
    const { guard } = destination()
    const app = express()
    for (const prefix of ['/a', '/b']) {
      const router = express.Router()
      router.post('/x', fencing(guard, { protect: 'handler' }), (_req, res) => {
        res.status(201).end()
      })
      app.use(prefix, router)
    }
    app.use(fencingErrors())
    expect((await request(app).post('/a/x').set(bearing(7, 'op'))).status).toBe(201)
    expect((await request(app).post('/b/x').set(bearing(7, 'op'))).status).toBe(422)
  })
})
