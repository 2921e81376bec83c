import type { Request, RequestHandler, Response } from 'express'
import request from 'supertest'
import { describe, expect, it } from 'vitest'
import {
  AttemptSupersededError,
  type DecisionEvent,
  type FaultEvent,
  StoreUnavailableError,
  WriteGuard,
} from 'writefence'
import { fencing } from 'writefence/express'
import { SqliteFenceStore } from 'writefence/sqlite'
import { bearing, destination, faults, once, signal, versions } from './harness.ts'
import { effectRoute, type Handler } from './routes.ts'

const settled = () => once<DecisionEvent>('writefence:decision', ({ verb }) => verb === 'effect')

describe.each(versions)('%s, how a handler is settled', (_, express) => {
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
          res.setHeader('Content-Length', 13)
          res.write('12345')
          res.write('6789')
          res.write('abc')
          res.write('d')
          res.end()
        },
      ],
    ])('no client sees %s before it is durable', async (_name, maxBodyBytes, handler) => {
      const [reached, go] = [signal(), signal()]
      const bank = withSettling(() => {
        reached.fire()
        return go.promise
      })
      const { start } = effectRoute(express, handler, { maxBodyBytes }, bank)
      let ended = false
      const { sent } = await start()
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
      const { start, post, runs } = effectRoute(
        express,
        (req, res) => {
          req.socket.once('end', () => gone.fire())
          res.status(201).json({ done: true })
        },
        {},
        bank,
      )
      const { hangUp } = await start()
      await reached.promise
      const end = settled()
      hangUp()
      await gone.promise
      go.fire()
      expect((await end).decision).toBe('applied')
      expect((await post()).body).toEqual({ done: true })
      expect(runs()).toBe(1)
    })

    it('R92: that fails keeps no answer from its client, and a retry does not run', async () => {
      const bank = withSettling(() => Promise.reject(new StoreUnavailableError('down')))
      const seen = faults()
      const { post, runs } = effectRoute(
        express,
        (_req, res) => res.status(201).json({ a: 1 }),
        {},
        bank,
      )
      const first = await post()
      expect([first.status, first.body]).toEqual([201, { a: 1 }])
      expect(seen.map(({ fault }) => fault)).toEqual(['settle_failed'])
      expect((await post()).body.code).toBe('in_flight')
      expect(runs()).toBe(1)
    })

    it("that fails with 'rerun' is answered outcome_unknown: it would run again", async () => {
      const bank = withSettling(() => Promise.reject(new StoreUnavailableError('down')))
      const handler: Handler = (_req, res) => {
        res.setHeader('X-Early', 'changed')
        res.cookie('a', '1').status(201).json({ a: 1 })
      }
      const early: RequestHandler = (_req, res, next) => {
        res.setHeader('X-Early', 'kept')
        next()
      }
      const options = { onUnknown: 'rerun' } as const
      const { post } = effectRoute(express, handler, options, bank, [early])
      const first = await post()
      expect([first.status, first.body.code]).toEqual([409, 'outcome_unknown'])
      expect(first.headers['fencing-verdict']).toBe('outcome_unknown;highest=7')
      expect(first.headers).not.toHaveProperty('set-cookie')
      expect(first.headers['x-early']).toBe('kept')
    })

    it('that fails after one large piece has another answer: nothing has gone out', async () => {
      const bank = withSettling(() => Promise.reject(new StoreUnavailableError('down')))
      const handler: Handler = (_req, res) => {
        res.write('123456')
        res.end()
      }
      const options = { onUnknown: 'rerun', maxBodyBytes: 3 } as const
      const { post } = effectRoute(express, handler, options, bank)
      expect((await post()).body.code).toBe('outcome_unknown')
    })

    it('that fails with a half-sent answer cuts the connection', async () => {
      const bank = withSettling(() => Promise.reject(new StoreUnavailableError('down')))
      const handler: Handler = (_req, res) => {
        res.write('12345')
        res.write('6789')
        res.end()
      }
      const { post } = effectRoute(express, handler, { onUnknown: 'rerun', maxBodyBytes: 3 }, bank)
      await expect(post()).rejects.toThrow()
    })
  })

  describe('past its deadline', () => {
    function clocked() {
      let now = 1_000_000
      const bank = destination({ now: () => now })
      return { bank, pass: (ms: number) => (now += ms) }
    }

    it('R71: a handler that does not end is overdue; once resolved, its end is late', async () => {
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
      const { post } = effectRoute(express, handler, { deadlineMs: 60_000 }, bank)
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
      expect(answer.body).toMatchObject({ jobId: 'job', generation: 7 })
      expect(answer.body.detail).toContain('operation "op"')
      expect((await fault).fault).toBe('attempt_superseded')
      expect((await post()).body).toEqual({ waits: false })
    })

    it('what superseded it is the cause of the answer, for those who run the place', async () => {
      const { bank, pass } = clocked()
      const app = express()
      app.post('/', fencing(bank.guard, { protect: 'handler' }), async (_req, res) => {
        pass(60_001)
        await bank.guard.resolve({ jobId: 'job', operationId: 'op' }, { status: 'not_applied' })
        res.end()
      })
      const errors: unknown[] = []
      app.use((error: unknown, _req: Request, res: Response, _next: unknown) => {
        errors.push(error)
        res.end()
      })
      await request(app).post('/').set(bearing(7, 'op'))
      const cause = expect.any(AttemptSupersededError)
      expect(errors).toEqual([expect.objectContaining({ code: 'outcome_unknown', cause })])
    })

    it('it may still settle, and its client gets the answer', async () => {
      const { bank, pass } = clocked()
      const { post } = effectRoute(
        express,
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
