import expressLatest from 'express'
import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { WriteGuard } from 'writefence'
import { fenceRoutes, fencing } from 'writefence/express'
import { SqliteFenceStore } from 'writefence/sqlite'
import { atEnd, bearing, destination, listening, raw, versions } from './harness.ts'

describe.each(versions)('%s, fenceRoutes', (_, express) => {
  function setUp(options: Partial<Parameters<typeof fenceRoutes>[1]> = {}) {
    const { guard, db } = destination()
    const app = express()
    app.use(fenceRoutes(guard, { authorize: 'none', ...options }))
    const call = (path: string, headers: Record<string, string> = bearing(7)) =>
      request(app).post(path).set(headers)
    return { guard, db, app, call }
  }

  it('advances, seals and tells', async () => {
    const { app, call } = setUp()
    const advanced = await call('/fences/job/advance')
    expect([advanced.status, advanced.body]).toEqual([
      200,
      {
        scope: '',
        jobId: 'job',
        highestGeneration: 7,
        holder: 'lease',
        sealed: false,
        inFlight: 0,
        overdue: 0,
        unknown: 0,
        older: { inFlight: 0, overdue: 0 },
      },
    ])
    expect(advanced.headers['cache-control']).toBe('no-store')
    // Whoever seals by lease.fetch wants to see that tokens are checked there.
    expect(advanced.headers['fencing-verdict']).toBe('passed;highest=7')
    expect((await call('/fences/job/seal', bearing(8))).body).toMatchObject({ sealed: true })
    const stale = await call('/fences/job/advance')
    expect([stale.status, stale.body.code, stale.body.highestGeneration]).toEqual([412, 'stale', 8])
    expect(stale.headers['fencing-verdict']).toBe('stale;highest=8')
    expect((await request(app).get('/fences/job')).body).toMatchObject({ highestGeneration: 8 })
    const unknown = await request(app).get('/fences/other')
    expect([unknown.status, unknown.body]).toEqual([404, { status: 'unknown_job' }])
  })

  it('the job of the path may be left out of the token, and must not be another', async () => {
    const { call, guard } = setUp()
    expect((await call('/fences/a%2Fb/advance', { 'Fencing-Token': '7' })).status).toBe(200)
    expect((await guard.inspect('a/b'))?.holder).toBe('none')
    const other = await call('/fences/other/advance')
    expect([other.status, other.body.code]).toEqual([403, 'token_rejected'])
    expect(await guard.inspect('other')).toBeUndefined()
  })

  it.each([
    ['no token', {}, 428, 'token_required'],
    ['a malformed one', { 'Fencing-Token': '07' }, 400, 'token_malformed'],
  ])('%s is refused', async (_name, headers, status, code) => {
    const { call } = setUp()
    const answer = await call('/fences/job/advance', headers as Record<string, string>)
    expect([answer.status, answer.body.code]).toEqual([status, code])
    if (code === 'token_required') expect(answer.body.jobId).toBe('job')
  })

  it('R62: two tokens are refused', async () => {
    const { app, guard } = setUp()
    const head = ['POST /fences/job/advance HTTP/1.1', 'Fencing-Token: 7', 'Fencing-Token: 7']
    expect(await raw(await listening(app), head)).toContain('token_malformed')
    expect(await guard.inspect('job')).toBeUndefined()
  })

  it('R65: broken encoding is 400', async () => {
    expect((await setUp().call('/fences/%E0%A4%A/advance')).status).toBe(400)
  })

  it('the scope is that of the routes which write', async () => {
    const scope = (req: { headers: Record<string, unknown> }) =>
      req.headers['x-tenant'] as string | undefined
    const { call, guard } = setUp({ scope })
    await call('/fences/job/advance').set('X-Tenant', 'a')
    expect((await guard.inspect('job', 'a'))?.highestGeneration).toBe(7)
    const none = await call('/fences/job/advance')
    expect([none.status, none.body.code]).toEqual([403, 'forbidden'])
    expect(await guard.inspect('job')).toBeUndefined()
  })

  it('authorize sees verb, job, scope and token, before anything is done', async () => {
    const seen: unknown[] = []
    const { call, app, guard } = setUp({
      scope: 'eu',
      authorize: (_req, given) => {
        seen.push(given)
        return given.verb === 'inspect'
      },
    })
    expect((await call('/fences/job/seal')).body.code).toBe('forbidden')
    expect(await guard.inspect('job', 'eu')).toBeUndefined()
    expect((await request(app).get('/fences/job')).status).toBe(404)
    const token = { jobId: 'job', generation: 7, leaseId: 'lease-7' }
    expect(seen).toEqual([
      { verb: 'seal', jobId: 'job', scope: 'eu', token },
      { verb: 'inspect', jobId: 'job', scope: 'eu', token: undefined },
    ])
  })

  it('a store that is down is 503, other paths are not its own', async () => {
    const { call, db, app } = setUp()
    expect((await request(app).post('/fences/job/nothing').set(bearing(7))).status).toBe(404)
    db.close()
    const answer = await call('/fences/job/advance')
    expect([answer.status, answer.body.code]).toEqual([503, 'store_unavailable'])
  })
})

describe('a service and a guarded route of one store', () => {
  it('agree: what was advanced by the one is the fence of the other', async () => {
    const bank = destination()
    const guard = new WriteGuard(new SqliteFenceStore(bank.db))
    atEnd(() => guard.close())
    const fence = fencing(guard)
    const app = expressLatest()
    app.use(fenceRoutes(bank.guard, { authorize: 'none' }))
    app.post('/', fence, (_req, res) => {
      res.end()
    })
    await request(app).post('/fences/job/advance').set(bearing(8))
    expect((await request(app).post('/').set(bearing(7, 'op'))).status).toBe(412)
  })
})
