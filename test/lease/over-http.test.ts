import { getEventListeners } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type HeldLease, runWithLease, WriteGuard } from 'writefence'
import { fenceRoutes, fencing, fencingErrors, leaseRoutes } from 'writefence/express'
import { HttpLeaseStore, httpDestination } from 'writefence/http'
import { openSqlite, SqliteFenceStore, SqliteLeaseStore } from 'writefence/sqlite'

const TTL = 30_000
const JOB = '订单-1/ü '

/** A lease service and a destination in one real server, with a table of effects. */
async function setUp() {
  const db = openSqlite(':memory:')
  db.exec('CREATE TABLE credits (operation TEXT NOT NULL)')
  const insert = db.prepare('INSERT INTO credits VALUES (?)')
  const guard = new WriteGuard(new SqliteFenceStore(db))
  const leases = new SqliteLeaseStore(db)
  const fence = fencing(guard)
  /** How many answers are cut off after the effect. */
  let cuts = 0
  let requests = 0
  const app = express()
  app.use(leaseRoutes(leases, { authorize: 'none' }), fenceRoutes(guard, { authorize: 'none' }))
  app.post('/credits', express.json(), fence, async (req, res) => {
    requests += 1
    const bound = fence.of(req)
    await bound.write(() => void insert.run(bound.operationId))
    if (cuts > 0) {
      cuts -= 1
      req.socket.destroy()
    } else res.status(201).end()
  })
  app.get('/credits', fence, (_req, res) => void res.json([]))
  app.post('/unguarded', (_req, res) => void res.status(201).end())
  app.use(fencingErrors())
  const server = app.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
    db.close()
  })
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const store = new HttpLeaseStore(base)
  const destinations = [httpDestination(base)]
  const options = { jobId: JOB, owner: 'w', ttlMs: TTL, destinations }
  return {
    base,
    guard,
    leases,
    store,
    credits: () => db.prepare('SELECT operation FROM credits').pluck().all(),
    requests: () => requests,
    cut: (count: number) => {
      cuts = count
    },
    run: <R>(handler: (lease: HeldLease) => Promise<R>) => runWithLease(store, options, handler),
  }
}

describe('a worker, its lease service and its destination over HTTP', () => {
  it('R46: claims, takes over, writes and completes, under an id of any text', async () => {
    const d = await setUp()
    const outcome = await d.run(async ({ fetch }) => {
      await fetch(`${d.base}/credits`)
      const response = await fetch(`${d.base}/credits`, { method: 'POST', operationId: 'op-1' })
      return [response.status, response.headers.get('fencing-verdict')]
    })
    const value = [201, 'applied;highest=1']
    expect(outcome).toEqual({ status: 'completed', value, generation: 1 })
    expect(await d.guard.inspect(JOB)).toMatchObject({ highestGeneration: 1, holder: 'lease' })
    expect(await d.leases.get(JOB)).toMatchObject({ status: 'completed', jobId: JOB })
    expect(await d.run(async () => {})).toEqual({ status: 'already_completed' })
    expect(d.credits()).toEqual(['op-1'])
  })

  it('R44: an effect whose answer was cut off is replayed, not done again', async () => {
    const d = await setUp()
    d.cut(2)
    const outcome = await d.run(async ({ fetch }) => {
      const response = await fetch(`${d.base}/credits`, { method: 'POST', operationId: 'op-1' })
      return response.headers.get('fencing-verdict')
    })
    expect(outcome).toMatchObject({ status: 'completed', value: 'replayed;highest=1' })
    expect(d.requests()).toBe(3)
    expect(d.credits()).toEqual(['op-1'])
  })

  it('R47: a worker that was overtaken is refused, aborted and told so', async () => {
    const d = await setUp()
    const outcome = await d.run(async (lease) => {
      await d.leases.forceRelease(JOB)
      const successor = await d.run(async ({ fetch }) => {
        await fetch(`${d.base}/credits`, { method: 'POST', operationId: 'op-1' })
      })
      expect(successor).toMatchObject({ status: 'completed', generation: 2 })
      const late = lease.fetch(`${d.base}/credits`, { method: 'POST', operationId: 'op-1' })
      await expect(late).rejects.toMatchObject({
        code: 'stale',
        highestGeneration: 2,
        operationApplied: true,
      })
      expect(lease.signal.reason).toMatchObject({ code: 'lease_lost', reason: 'fenced' })
    })
    expect(outcome).toEqual({ status: 'lost', reason: 'fenced' })
    expect(d.credits()).toEqual(['op-1'])
  })

  it('R119: the second holder of one generation is refused when it takes over', async () => {
    const d = await setUp()
    const other = new SqliteLeaseStore(openSqlite(':memory:'))
    expect((await d.run(async () => {})).status).toBe('completed')
    const destinations = [httpDestination(d.base)]
    const options = { jobId: JOB, owner: 'twin', ttlMs: TTL, destinations }
    const outcome = await runWithLease(other, options, () => expect.fail('it ran'))
    const error = { code: 'conflict', highestGeneration: 1 }
    expect(outcome).toMatchObject({ status: 'lost', reason: 'fenced', error })
  })

  it('a sealed job is completed by the next holder, without being run again', async () => {
    const d = await setUp()
    const first = await d.run(async (lease) => {
      await d.guard.seal(lease)
      await d.leases.forceRelease(JOB)
    })
    expect(first).toEqual({ status: 'lost', reason: 'released' })
    const outcome = await d.run(async () => expect.fail('it ran'))
    expect(outcome).toEqual({ status: 'already_completed' })
    expect(await d.leases.get(JOB)).toMatchObject({ status: 'completed', generation: 2 })
  })

  it('a place that does not check the token is found out', async () => {
    const d = await setUp()
    const outcome = d.run(({ fetch }) =>
      fetch(`${d.base}/unguarded`, { method: 'POST', operationId: 'op-1' }),
    )
    await expect(outcome).rejects.toThrow(/without a Fencing-Verdict/)
  })

  it('R43: 500 writes at once, and one by one, leave no listener and no warning', async () => {
    const d = await setUp()
    const warnings: unknown[] = []
    const warn = (warning: Error) => warnings.push(warning)
    process.on('warning', warn)
    const mine = new AbortController()
    const listeners: number[] = []
    await d.run(async ({ fetch, signal }) => {
      const write = async (operationId: string) => {
        const init = { method: 'POST', operationId, signal: mine.signal }
        await (await fetch(`${d.base}/credits`, init)).text()
      }
      const count = () =>
        [signal, mine.signal].map((each) => getEventListeners(each, 'abort').length)
      for (let i = 0; i < 100; i += 1) await write(`one ${i}`)
      listeners.push(...count())
      await Promise.all(Array.from({ length: 400 }, (_, i) => write(`all ${i}`)))
      listeners.push(...count())
    })
    process.off('warning', warn)
    expect(warnings).toEqual([])
    expect(listeners).toEqual([0, 0, 0, 0])
    expect(d.credits()).toHaveLength(500)
  })
})
