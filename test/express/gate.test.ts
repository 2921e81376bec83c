import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { parseFencingToken } from '../../src/wire/headers.ts'
import { bearing, decisions, listening, raw, versions } from './harness.ts'
import { guardedRoute, type Options } from './routes.ts'

describe.each(versions)('%s, the way in', (_, express) => {
  describe.each(['write', 'handler'] as const)("protect: '%s'", (protect) => {
    const setUp = (options: Options = {}) => guardedRoute(express, protect, options)

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
        expect(seen).toEqual([{ verb: 'request', decision: code, scope: '' }])
      })

      it('who sends no token is shown one that can be read', async () => {
        const { detail } = (await setUp().send({ 'Idempotency-Key': 'op' })).body
        const [, example = ''] = /^send a Fencing-Token, such as (\S+)$/.exec(detail) ?? []
        expect(parseFencingToken(example)).toMatchObject({ generation: 7, jobId: 'import-42' })
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

    it('a token that names no job on a route that names none says so', async () => {
      const answer = await setUp().send({ ...bearing(7, 'op'), 'Fencing-Token': '7' })
      expect(answer.body.detail).toContain('it names no job, nor does the route')
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
        const passed = { verb: 'request', decision: 'passed', scope: '' }
        expect(seen).toEqual([passed, passed, passed])
      })

      it('OPTIONS passes untouched, whatever it bears', async () => {
        const { app, guard, runs } = setUp()
        const answer = await request(app).options('/').set('Fencing-Token', 'nonsense')
        expect([answer.status, runs()]).toEqual([200, 1])
        await request(app).options('/').set(bearing(9))
        expect(await guard.inspect('job')).toBeUndefined()
      })

      it('with a token advance the fence, are refused if stale, and record nothing', async () => {
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
  })
})
