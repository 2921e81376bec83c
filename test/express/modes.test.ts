import type { Request, Response } from 'express'
import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { WriteGuard } from 'writefence'
import { fencing, fencingErrors } from 'writefence/express'
import { SqliteFenceStore } from 'writefence/sqlite'
import { bearing, decisions, destination, faults, signal, versions } from './harness.ts'

type Options = NonNullable<Parameters<typeof fencing>[1]>

const jobId = () => 'job'

describe.each(versions)('%s, mode', (_, express) => {
  function setUp(options: Options) {
    const bank = destination()
    const fence = fencing(bank.guard, options)
    const app = express()
    let runs = 0
    app.use(express.json())
    app.post('/', fence, (req: Request, res: Response, next) => {
      runs += 1
      if (options.protect === 'handler') {
        res.status(201).json({ runs })
        return
      }
      fence
        .of(req)
        .write(bank.credit(req.body?.amount ?? 1))
        .then((outcome) => res.status(201).json(outcome), next)
    })
    app.post('/bare', fence, (_req, res) => {
      runs += 1
      res.status(201).json({ bare: true })
    })
    app.use(fencingErrors())
    const send = (headers: Record<string, string>, path = '/') =>
      request(app).post(path).set(headers)
    return { ...bank, fence, app, send, runs: () => runs }
  }

  describe("'report'", () => {
    const refusals: readonly (readonly [string, Record<string, string>, string])[] = [
      ['no token', {}, 'token_required'],
      ['a malformed token', { 'Fencing-Token': '007' }, 'token_malformed'],
      ['no key', bearing(7), 'operation_id_required'],
      ['a token for another job', bearing(7, 'op', { jobId: 'other' }), 'token_rejected'],
    ]

    describe.each(['write', 'handler'] as const)("protect: '%s'", (protect) => {
      it.each(refusals)(
        '%s: the handler runs, the refusal is told',
        async (_name, headers, code) => {
          const { send, runs } = setUp({ mode: 'report', protect, jobId })
          const seen = decisions()
          const answer = await send(headers)
          expect([answer.status, answer.headers['fencing-verdict']]).toEqual([201, 'passed'])
          expect(runs()).toBe(1)
          expect(seen[0]).toMatchObject({ verb: 'request', decision: code, reportOnly: true })
        },
      )

      it.each([
        ['stale', { jobId: 'job', generation: 8 }],
        ['conflict', { jobId: 'job', generation: 7, leaseId: 'restored' }],
      ] as const)('a %s token: it runs, and is told as reported only', async (decision, fence) => {
        const { send, guard, runs } = setUp({ mode: 'report', protect })
        await guard.advance(fence)
        const seen = decisions()
        expect((await send(bearing(7, 'op'))).status).toBe(201)
        expect(runs()).toBe(1)
        expect(seen.length).toBeGreaterThan(0)
        const known = { decision, jobId: 'job', generation: 7, reportOnly: true }
        for (const each of seen) expect(each).toMatchObject(known)
        const verb = protect === 'write' ? 'request' : 'effect'
        expect(seen[0]).toMatchObject({ verb, highestGeneration: fence.generation })
        expect((await guard.inspect('job'))?.highestGeneration).toBe(fence.generation)
      })

      it('a good token moves the fence, so that the next one is known to be stale', async () => {
        const { send, guard } = setUp({ mode: 'report', protect })
        await send(bearing(7, 'op'))
        expect((await guard.inspect('job'))?.highestGeneration).toBe(7)
      })

      it('a duplicate runs again, and is told', async () => {
        const { send, runs } = setUp({ mode: 'report', protect })
        await send(bearing(7, 'op'))
        const seen = decisions()
        const again = await send(bearing(7, 'op'))
        expect([again.status, again.headers['fencing-verdict']]).toEqual([201, 'passed'])
        expect(again.headers).not.toHaveProperty('idempotent-replayed')
        expect(runs()).toBe(2)
        expect(seen.at(-1)).toMatchObject({ decision: 'replayed', reportOnly: true })
      })

      it('a store that refuses to be asked does not stop a handler', async () => {
        const { send, db } = setUp({ mode: 'report', protect })
        db.exec('BEGIN')
        const seen = faults()
        expect((await send(bearing(7, 'op'), '/bare')).status).toBe(201)
        db.exec('COMMIT')
        expect(seen.map(({ fault }) => fault)).toContain('failed_open')
      })

      it('a store that is down does not stop a handler that does not write', async () => {
        const { send, db } = setUp({ mode: 'report', protect })
        db.close()
        const seen = faults()
        expect((await send(bearing(7, 'op'), '/bare')).status).toBe(201)
        expect(seen.length).toBeGreaterThan(0)
      })
    })

    it('writes are applied whatever the verdict', async () => {
      const { send, credits } = setUp({ mode: 'report', jobId })
      await send(bearing(8, 'op')).send({ amount: 1 })
      const stale = await send(bearing(7, 'old')).send({ amount: 2 })
      expect(stale.body).toMatchObject({ status: 'applied', result: { balance: 3 } })
      const none = await send({}).send({ amount: 3 })
      expect(none.body).toEqual({
        status: 'applied',
        result: { balance: 6 },
        appliedGeneration: 0,
        highestGeneration: 0,
      })
      expect(credits()).toEqual([1, 2, 3])
    })

    it('without a token and without a jobId there is nothing to write to', async () => {
      const { send } = setUp({ mode: 'report' })
      const answer = await send({})
      expect([answer.status, answer.body.code]).toEqual([428, 'token_required'])
    })

    it('only what is stale or conflicting leaves the fence where it is', async () => {
      const { send, guard } = setUp({ mode: 'report' })
      await guard.seal({ jobId: 'job', generation: 7 })
      const seen = decisions()
      expect((await send(bearing(8, 'op'))).status).toBe(201)
      expect((await guard.inspect('job'))?.highestGeneration).toBe(8)
      expect(seen.map(({ verb, decision }) => [verb, decision])).toEqual([
        ['advance', 'advanced'],
        ['write', 'sealed'],
      ])
    })

    it('a generation that comes in between does not make it refuse', async () => {
      const { db } = destination()
      class Overtaken extends SqliteFenceStore {
        override async view(...job: Parameters<SqliteFenceStore['view']>) {
          const seen = await super.view(...job)
          await guard.advance({ jobId: 'job', generation: 8 })
          return seen
        }
      }
      const guard = new WriteGuard(new Overtaken(db))
      const app = express()
      app.post('/', fencing(guard, { mode: 'report' }), (_req, res) => {
        res.status(409).end()
      })
      const seen = faults()
      expect((await request(app).post('/').set(bearing(7, 'op'))).status).toBe(409)
      expect(seen).toEqual([])
      expect((await guard.inspect('job'))?.highestGeneration).toBe(8)
    })

    it('a success without a write is told, and let through', async () => {
      const { send } = setUp({ mode: 'report' })
      const seen = faults()
      expect((await send(bearing(7, 'op'), '/bare')).body).toEqual({ bare: true })
      expect(seen.map(({ fault }) => fault)).toEqual(['unguarded_success'])
    })
  })

  describe("'once-fenced'", () => {
    describe.each(['write', 'handler'] as const)("protect: '%s'", (protect) => {
      it('a job without a fence takes requests without a token, until the first', async () => {
        const { send, guard, runs } = setUp({ mode: 'once-fenced', protect, jobId })
        const seen = decisions()
        for (const count of [1, 2]) {
          const legacy = await send({})
          expect([legacy.status, legacy.headers['fencing-verdict']]).toEqual([201, 'passed'])
          expect(runs()).toBe(count)
        }
        expect(await guard.inspect('job')).toBeUndefined()
        const passed = { verb: 'request', decision: 'passed', scope: '', jobId: 'job' }
        expect(seen.filter(({ verb }) => verb === 'request')).toEqual([passed, passed])
        expect(new Set(seen.map(({ decision }) => decision))).toEqual(new Set(['passed']))
        expect((await send(bearing(1, 'op'))).status).toBe(201)
        const late = await send({})
        expect([late.status, late.body.code, late.body.jobId]).toEqual([
          428,
          'token_required',
          'job',
        ])
        expect(late.body.detail).toContain('the job has a fence')
        expect(runs()).toBe(3)
      })

      it('what bears a token is judged as ever', async () => {
        const { send } = setUp({ mode: 'once-fenced', protect, jobId })
        await send(bearing(8, 'op'))
        expect((await send(bearing(7, 'other'))).body.code).toBe('stale')
        expect((await send({ 'Fencing-Token': '9' })).body.code).toBe('operation_id_required')
        expect((await send({ 'Fencing-Token': '009' })).body.code).toBe('token_malformed')
      })

      it('a store that is down refuses', async () => {
        const { send, db, runs } = setUp({ mode: 'once-fenced', protect, jobId })
        db.close()
        expect((await send({})).status).toBe(503)
        expect(runs()).toBe(0)
      })

      it('the job and the scope that decide are those of the route', async () => {
        const { send, guard } = setUp({ mode: 'once-fenced', protect, jobId, scope: 'eu' })
        await guard.advance({ jobId: 'job', generation: 1 })
        expect((await send({})).status).toBe(201)
        await guard.advance({ jobId: 'job', generation: 1 }, 'eu')
        expect((await send({})).status).toBe(428)
      })
    })

    it('a write is checked in its transaction: a token in between refuses it', async () => {
      const [reached, go] = [signal(), signal()]
      const bank = destination()
      const fence = fencing(bank.guard, { mode: 'once-fenced', jobId })
      const app = express()
      app.post('/', fence, (req: Request, res: Response, next) => {
        reached.fire()
        go.promise
          .then(() => fence.of(req).write(bank.credit(1)))
          .then(() => res.status(201).end(), next)
      })
      app.use(fencingErrors())
      const legacy = request(app)
        .post('/')
        .then((answer) => answer)
      await reached.promise
      await bank.guard.advance({ jobId: 'job', generation: 1 })
      go.fire()
      const answer = await legacy
      expect([answer.status, answer.body.code]).toEqual([428, 'token_required'])
      expect(answer.headers['fencing-verdict']).toBe('token_required')
      expect(bank.credits()).toEqual([])
    })

    it('a write whose fate is not known is not to be repeated', async () => {
      const bank = destination()
      const fence = fencing(bank.guard, { mode: 'once-fenced', jobId })
      const app = express()
      app.post('/', fence, (req: Request, _res: Response, next) => {
        bank.db.close()
        fence.of(req).write(bank.credit(1)).catch(next)
      })
      app.use(fencingErrors())
      const answer = await request(app).post('/')
      expect([answer.status, answer.body.retryable]).toEqual([503, false])
    })

    it('a write that throws is undone, and its error is the answer', async () => {
      const bank = destination()
      const fence = fencing(bank.guard, { mode: 'once-fenced', jobId })
      const app = express()
      app.post('/', fence, (req: Request, res: Response) =>
        fence
          .of(req)
          .write(() => {
            bank.credit(1)()
            throw new Error('bug')
          })
          .catch(({ message }: Error) => res.status(500).json({ message })),
      )
      expect((await request(app).post('/')).body).toEqual({ message: 'bug' })
      expect(bank.credits()).toEqual([])
    })

    it('within and effect need a token', async () => {
      const bank = destination()
      const fence = fencing(bank.guard, { mode: 'once-fenced', jobId })
      const app = express()
      const codes: unknown[] = []
      app.post('/', fence, async (req: Request, res: Response) => {
        const bound = fence.of(req)
        expect(bound.fenced).toBe(false)
        await bound.effect(async () => 1).catch(({ code }) => codes.push(code))
        try {
          bound.within(bank.db, () => 1)
        } catch (error) {
          codes.push((error as { code?: string }).code)
        }
        res.end()
      })
      expect((await request(app).post('/')).status).toBe(200)
      expect(codes).toEqual(['token_required', 'token_required'])
    })
  })
})
