import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import compression from 'compression'
import type { Request, Response } from 'express'
import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { type DecisionEvent, type FaultEvent, StoreUnavailableError, WriteGuard } from 'writefence'
import { fencing, fencingErrors } from 'writefence/express'
import { SqliteFenceStore } from 'writefence/sqlite'
import {
  atEnd,
  bearing,
  type Destination,
  destination,
  faults,
  listening,
  once,
  signal,
  versions,
} from './harness.ts'

type Handler = (req: Request, res: Response) => unknown
type Options = NonNullable<Parameters<typeof fencing>[1]>

const settled = () => once<DecisionEvent>('writefence:decision', ({ verb }) => verb === 'effect')
const big = randomBytes(3_000_000)

function bigFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'writefence-'))
  atEnd(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'big.txt')
  writeFileSync(path, big)
  return path
}

describe.each(versions)('%s, a handler that is interrupted', (_, express) => {
  async function setUp(
    handler: Handler,
    options: Options = {},
    bank: Pick<Destination, 'guard'> = destination(),
  ) {
    const app = express()
    let runs = 0
    app.use(express.json())
    if (handler.name.includes('compressed')) app.use(compression({ threshold: 0 }))
    const fence = fencing(bank.guard, { protect: 'handler', ...options })
    app.post('/', fence, (req, res, next) => {
      runs += 1
      new Promise((resolve) => resolve(handler(req, res))).catch(next)
    })
    app.use(fencingErrors())
    const port = await listening(app)
    const post = (generation = 7, id = 'op', body: object = {}) =>
      request(app).post('/').set(bearing(generation, id)).send(body)
    /** Sends the request; `hangUp` cuts the connection. */
    const start = (headers = {}) => {
      const sent = http.request({ port, method: 'POST', agent: false, path: '/', headers })
      sent.on('error', () => {})
      sent.setHeader('Content-Type', 'application/json')
      sent.end('{}')
      return { sent, hangUp: () => sent.destroy() }
    }
    return { post, start, runs: () => runs }
  }

  it('R77: the client hangs up, the handler ends: a retry gets the answer', async () => {
    const [began, gone, go] = [signal(), signal(), signal()]
    const { start, post, runs } = await setUp(async (req, res) => {
      req.socket.once('close', () => gone.fire())
      began.fire()
      await go.promise
      res.status(201).json({ done: true })
    })
    const { hangUp } = start(bearing(7, 'op'))
    await began.promise
    hangUp()
    await gone.promise
    const end = settled()
    go.fire()
    expect((await end).decision).toBe('applied')
    const again = await post()
    expect([again.status, again.body]).toEqual([201, { done: true }])
    expect(again.headers['idempotent-replayed']).toBe('true')
    expect(runs()).toBe(1)
  })

  it('R77: the handler hears of the hang-up only once it has ended', async () => {
    const [began, gone, go, closed] = [signal(), signal(), signal(), signal<boolean>()]
    const { start } = await setUp(async (req, res) => {
      res.once('close', () => closed.fire(res.writableEnded))
      req.socket.once('close', () => gone.fire())
      began.fire()
      await go.promise
      res.end()
    })
    const { hangUp } = start(bearing(7, 'op'))
    await began.promise
    hangUp()
    await gone.promise
    go.fire()
    await closed.promise
  })

  it.each<[string, Handler]>([
    ['a pipe', (_req, res) => Readable.from(pieces()).pipe(res)],
    ['sendFile', (_req, res) => res.sendFile(bigFile())],
    [
      'a compressed pipe',
      function compressed(_req, res) {
        Readable.from(pieces()).pipe(res.type('text/plain'))
      },
    ],
  ])(
    'R98: the client drops in the middle of %s: it is settled all the same',
    async (_n, handler) => {
      const { start, post, runs } = await setUp(handler)
      const headers = { ...bearing(7, 'op'), 'Accept-Encoding': 'gzip' }
      const end = settled()
      const { sent, hangUp } = start(headers)
      sent.once('response', (answer) => answer.once('data', hangUp))
      expect((await end).decision).toBe('applied')
      const again = await post()
      expect([again.status, again.headers['idempotent-replayed']]).toEqual([200, 'true'])
      expect(runs()).toBe(1)
    },
  )

  it('R98: sendFile to a client that is gone already is settled too', async () => {
    const [began, gone, go] = [signal(), signal(), signal()]
    const path = bigFile()
    const { start, post } = await setUp(async (req, res) => {
      req.socket.once('close', () => gone.fire())
      began.fire()
      await go.promise
      res.sendFile(path)
    })
    const { hangUp } = start(bearing(7, 'op'))
    await began.promise
    hangUp()
    await gone.promise
    const end = settled()
    go.fire()
    expect((await end).decision).toBe('applied')
    expect((await post()).headers['idempotent-replayed']).toBe('true')
  })

  it('R100: a handler that destroys its response leaves the outcome unknown', async () => {
    const { post, runs } = await setUp((_req, res) => {
      res.write('half')
      res.destroy()
    })
    await expect(post()).rejects.toThrow('socket hang up')
    const again = await post()
    expect([again.status, again.body.code]).toEqual([409, 'outcome_unknown'])
    expect(runs()).toBe(1)
  })

  it('R100: one that destroys it after a part has gone out, too', async () => {
    const { post } = await setUp((_req, res) => {
      res.write(big)
      res.write(big)
      res.destroy()
    })
    await expect(post()).rejects.toThrow()
    expect((await post()).body.code).toBe('outcome_unknown')
  })

  it('R76, R80: while it runs, a duplicate is in flight, another body a mismatch', async () => {
    const [began, go] = [signal(), signal()]
    const { post, runs } = await setUp(async (_req, res) => {
      began.fire()
      await go.promise
      res.status(201).json({ done: true })
    })
    const first = post(7, 'op', { a: 1 }).then((answer) => answer)
    await began.promise
    const mismatch = await post(7, 'op', { a: 2 })
    expect([mismatch.status, mismatch.body.code]).toEqual([422, 'mismatch'])
    const inFlight = await post(7, 'op', { a: 1 })
    expect([inFlight.status, inFlight.body.code]).toEqual([409, 'in_flight'])
    expect(inFlight.body.retryable).toBe(true)
    expect(inFlight.headers['retry-after']).toMatch(/^[1-5]$/)
    const newer = await post(8, 'other', {})
    expect([newer.status, newer.body.code]).toEqual([409, 'in_flight'])
    go.fire()
    expect((await first).status).toBe(201)
    expect((await post(7, 'op', { a: 1 })).body.code).toBe('stale')
    expect((await post(8, 'op', { a: 1 })).body).toEqual({ done: true })
    expect(runs()).toBe(1)
  })

  it('R104: many at once: one effect, the others are in flight or get the answer', async () => {
    const { post, runs } = await setUp((_req, res) => res.status(201).json({ done: true }))
    const all = await Promise.all(Array.from({ length: 20 }, () => post()))
    for (const { status, body } of all) {
      expect([201, 409]).toContain(status)
      expect(body).toEqual(
        status === 201 ? { done: true } : expect.objectContaining({ code: 'in_flight' }),
      )
    }
    expect(runs()).toBe(1)
  })

  describe('settling', () => {
    /** Lets the first transaction (the reservation) pass, and does as told with the second. */
    function withSettling(second: () => Promise<void>) {
      const bank = destination()
      let count = 0
      class Watched extends SqliteFenceStore {
        override async transact(...args: Parameters<SqliteFenceStore['transact']>) {
          count += 1
          if (count === 2) await second()
          return super.transact(...args) as never
        }
      }
      return { guard: new WriteGuard(new Watched(bank.db)) as typeof bank.guard }
    }

    it.each<[string, number, Handler]>([
      ['an answer', 100, (_req, res) => res.json({ done: true })],
      [
        'the last piece of a stream that is over the limit',
        6,
        (_req, res) => {
          res.setHeader('Content-Length', 12)
          res.write('12345')
          res.write('6789')
          res.write('abc')
          res.end()
        },
      ],
    ])('no client sees %s before it is durable', async (_name, maxBodyBytes, handler) => {
      const [reached, go] = [signal(), signal()]
      const bank = withSettling(() => {
        reached.fire()
        return go.promise
      })
      const { start } = await setUp(handler, { maxBodyBytes }, bank)
      let ended = false
      const { sent } = start(bearing(7, 'op'))
      const whole = new Promise((resolve) => {
        sent.once('response', (answer) => {
          answer.resume().once('end', () => {
            ended = true
            resolve(answer.statusCode)
          })
        })
      })
      await reached.promise
      // Whatever could have been sent by now would be here after a round trip of another request.
      const { status } = await request(express()).get('/')
      expect([status, ended]).toEqual([404, false])
      go.fire()
      expect(await whole).toBe(200)
    })

    it('R100: a client that hangs up while it is settled finds the answer on record', async () => {
      const [reached, go, gone] = [signal(), signal(), signal()]
      const bank = withSettling(() => {
        reached.fire()
        return go.promise
      })
      const { start, post, runs } = await setUp(
        (req, res) => {
          req.socket.once('end', () => gone.fire())
          res.status(201).json({ done: true })
        },
        {},
        bank,
      )
      const { hangUp } = start(bearing(7, 'op'))
      await reached.promise
      const end = settled()
      hangUp()
      await gone.promise
      go.fire()
      expect((await end).decision).toBe('applied')
      expect((await post()).body).toEqual({ done: true })
      expect(runs()).toBe(1)
    })

    it('R92: that fails does not keep the answer from the client; a retry does not run', async () => {
      const bank = withSettling(() => Promise.reject(new StoreUnavailableError('down')))
      const seen = faults()
      const { post, runs } = await setUp((_req, res) => res.status(201).json({ a: 1 }), {}, bank)
      const first = await post()
      expect([first.status, first.body]).toEqual([201, { a: 1 }])
      expect(seen.map(({ fault }) => fault)).toEqual(['settle_failed'])
      expect((await post()).body.code).toBe('in_flight')
      expect(runs()).toBe(1)
    })

    it("that fails with 'rerun' is answered outcome_unknown: it would run again", async () => {
      const bank = withSettling(() => Promise.reject(new StoreUnavailableError('down')))
      const handler: Handler = (_req, res) => res.cookie('a', '1').status(201).json({ a: 1 })
      const { post } = await setUp(handler, { onUnknown: 'rerun' }, bank)
      const first = await post()
      expect([first.status, first.body.code]).toEqual([409, 'outcome_unknown'])
      expect(first.headers['fencing-verdict']).toBe('outcome_unknown;highest=7')
      expect(first.headers).not.toHaveProperty('set-cookie')
    })

    it('that fails with a half-sent answer cuts the connection', async () => {
      const bank = withSettling(() => Promise.reject(new StoreUnavailableError('down')))
      const handler: Handler = (_req, res) => {
        res.write('12345')
        res.write('6789')
        res.end()
      }
      const { post } = await setUp(handler, { onUnknown: 'rerun', maxBodyBytes: 3 }, bank)
      await expect(post()).rejects.toThrow()
    })
  })

  describe('past its deadline', () => {
    function clocked() {
      let now = 1_000_000
      const bank = destination({ now: () => now })
      return { bank, pass: (ms: number) => (now += ms) }
    }

    it('R71: a handler that never ends is overdue, then resolved; its end is superseded', async () => {
      const { bank, pass } = clocked()
      const [began, go] = [signal(), signal()]
      let first = true
      const handler: Handler = async (_req, res) => {
        const waits = first
        first = false
        began.fire()
        if (waits) await go.promise
        res.status(201).json({ waits })
      }
      const { post } = await setUp(handler, { deadlineMs: 60_000 }, bank)
      const slow = post().then((answer) => answer)
      await began.promise
      expect((await post()).body.code).toBe('in_flight')
      pass(60_001)
      expect((await post()).body.code).toBe('outcome_unknown')
      await bank.guard.resolve({ jobId: 'job', operationId: 'op' }, { status: 'not_applied' })
      expect((await post()).body).toEqual({ waits: false })
      const fault = once<FaultEvent>('writefence:fault', () => true)
      go.fire()
      const answer = await slow
      expect([answer.status, answer.body.code]).toEqual([409, 'outcome_unknown'])
      expect((await fault).fault).toBe('attempt_superseded')
      expect((await post()).body).toEqual({ waits: false })
    })

    it('it may still settle, and its client gets the answer', async () => {
      const { bank, pass } = clocked()
      const { post } = await setUp(
        (_req, res) => {
          pass(60_001)
          res.status(201).json({ late: true })
        },
        {},
        bank,
      )
      expect((await post()).body).toEqual({ late: true })
      expect((await post()).headers['idempotent-replayed']).toBe('true')
    })
  })
})

function* pieces() {
  for (let index = 0; index < 30; index += 1)
    yield big.subarray(index * 100_000, (index + 1) * 100_000)
}
