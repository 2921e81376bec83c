import type { Request, RequestHandler, Response } from 'express'
import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { type DecisionEvent, WriteGuard } from 'writefence'
import { fenceRoutes, fencing, fencingErrors, leaseRoutes } from 'writefence/express'
import { SqliteFenceStore, SqliteLeaseStore } from 'writefence/sqlite'
import {
  atEnd,
  bearing,
  decisions,
  destination,
  faults,
  listening,
  once,
  signal,
  versions,
} from './harness.ts'
import type { Framework } from './routes.ts'

/** What would have ended the process, from here to the end of the test. */
function crashes(): unknown[] {
  const seen: unknown[] = []
  const listener = (error: unknown) => seen.push(error)
  for (const event of ['unhandledRejection', 'uncaughtException']) {
    process.on(event, listener)
    atEnd(() => process.off(event, listener))
  }
  return seen
}

/** An application that answers 503 by itself while the stores are asked for the first time. */
function timingOut(framework: Framework, options: object = {}) {
  const bank = destination()
  const [reached, go] = [signal(), signal()]
  let slow = false
  const turn = async () => {
    if (!slow) return
    slow = false
    reached.fire()
    await go.promise
  }
  class SlowFences extends SqliteFenceStore {
    override async transact(...args: Parameters<SqliteFenceStore['transact']>) {
      await turn()
      return super.transact(...args) as never
    }
  }
  class SlowLeases extends SqliteLeaseStore {
    override async claim(...args: Parameters<SqliteLeaseStore['claim']>) {
      await turn()
      return super.claim(...args)
    }
  }
  const guard = new WriteGuard(new SlowFences(bank.db)) as typeof bank.guard
  const leases = new SlowLeases(bank.db)
  let runs = 0
  const run: RequestHandler = (_req, res) => {
    runs += 1
    res.status(201).json({ runs })
  }
  const handled = signal<unknown>()
  const app = framework()
  app.set('env', 'test')
  app.use((_req, res, next) => {
    if (slow) void reached.promise.then(() => res.status(503).end('too late'))
    next()
  })
  app.use(framework.json())
  app.use(leaseRoutes(leases, { authorize: 'none' }), fenceRoutes(guard, { authorize: 'none' }))
  const fence = fencing(guard, options)
  app.post('/handler', fencing(guard, { protect: 'handler', ...options }), run)
  app.post('/write', fence, (req, res, next) => {
    fence
      .of(req)
      .write(bank.credit(5))
      .then(() => run(req, res, next))
      .catch(next)
  })
  app.use(fencingErrors())
  app.use((error: unknown, _req: Request, _res: Response, next: (error: unknown) => void) => {
    handled.fire(error)
    next(error)
  })
  /** Sends a request that is answered by the time-out, and lets it go on then. */
  const late = async (path: string, headers: Record<string, string> = {}, body: object = {}) => {
    slow = true
    const port = await listening(app)
    const answer = await request(`http://127.0.0.1:${port}`).post(path).set(headers).send(body)
    go.fire()
    return [answer.status, answer.text]
  }
  const post = (path: string, headers: Record<string, string>) =>
    request(app).post(path).set(headers).send({})
  return { ...bank, guard, leases, late, post, handled: handled.promise, runs: () => runs }
}

const TOO_LATE = [503, 'too late']
/** Longer than whatever is left to be done for the request before. */
const roundTrip = (framework: Framework) => request(framework()).get('/')

describe.each(versions)(
  '%s, a request that was answered by somebody else meanwhile',
  (_, express) => {
    it('of the lease service has its effect, and its answer is dropped', async () => {
      const seen = crashes()
      const { late, leases } = timingOut(express)
      const body = { owner: 'w', ttlMs: 60_000 }
      expect(await late('/leases/job/claim', {}, body)).toEqual(TOO_LATE)
      await roundTrip(express)
      expect(await leases.get('job')).toMatchObject({ owner: 'w', generation: 1 })
      expect(seen).toEqual([])
    })

    it('of the fence service, too', async () => {
      const seen = crashes()
      const { late, guard } = timingOut(express)
      expect(await late('/fences/job/advance', bearing(7))).toEqual(TOO_LATE)
      await roundTrip(express)
      expect(await guard.inspect('job')).toMatchObject({ highestGeneration: 7 })
      expect(seen).toEqual([])
    })

    it("protect: 'handler' does not run the handler, and holds nobody back", async () => {
      const seen = crashes()
      const { late, post, guard, handled, runs } = timingOut(express)
      const told = decisions()
      expect(await late('/handler', bearing(7, 'op'))).toEqual(TOO_LATE)
      const message = 'it was answered before the handler ran'
      expect(await handled).toMatchObject({ code: 'not_applied', message })
      expect([runs(), seen]).toEqual([0, []])
      expect(told.at(-1)).toMatchObject({ verb: 'effect', decision: 'failed' })
      expect(await guard.inspect('job')).toMatchObject({ inFlight: 0, overdue: 0, unknown: 0 })
      const again = await post('/handler', bearing(7, 'op'))
      expect([again.status, again.body]).toEqual([201, { runs: 1 }])
    })

    it("protect: 'handler' drops what it would have replayed", async () => {
      const seen = crashes()
      const { late, post, runs } = timingOut(express)
      const replayed = once<DecisionEvent>(
        'writefence:decision',
        ({ decision }) => decision === 'replayed',
      )
      await post('/handler', bearing(7, 'op'))
      expect(await late('/handler', bearing(7, 'op'))).toEqual(TOO_LATE)
      await replayed
      await roundTrip(express)
      expect([runs(), seen]).toEqual([1, []])
    })

    it('in report mode the handler runs, as it would without a guard', async () => {
      const seen = crashes()
      const { late, handled, runs } = timingOut(express, { mode: 'report' })
      const told = faults()
      expect(await late('/handler', bearing(7, 'op'))).toEqual(TOO_LATE)
      expect(await handled).toMatchObject({ code: 'ERR_HTTP_HEADERS_SENT' })
      expect(told.map(({ fault }) => fault)).toEqual(['failed_open'])
      expect([runs(), seen]).toEqual([1, []])
    })

    it("protect: 'write' lets the handler write, once", async () => {
      const seen = crashes()
      const { late, post, handled, credits } = timingOut(express)
      expect(await late('/write', bearing(7, 'op'))).toEqual(TOO_LATE)
      expect(await handled).toMatchObject({ code: 'ERR_HTTP_HEADERS_SENT' })
      const again = await post('/write', bearing(7, 'op'))
      expect([again.status, again.headers['idempotent-replayed']]).toEqual([201, 'true'])
      expect([credits(), seen]).toEqual([[5], []])
    })

    it.each(['/write', '/handler'])(
      '%s passes its refusal on to the error handlers',
      async (path) => {
        const seen = crashes()
        const { late, post, handled, runs } = timingOut(express)
        await post('/fences/job/advance', bearing(8))
        expect(await late(path, bearing(7, 'op'))).toEqual(TOO_LATE)
        expect(await handled).toMatchObject({ code: 'stale' })
        expect([runs(), seen]).toEqual([0, []])
      },
    )
  },
)
