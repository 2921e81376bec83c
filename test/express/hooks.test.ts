import { createHmac } from 'node:crypto'
import type { Request, Response } from 'express'
import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { StoreUnavailableError } from 'writefence'
import { fencing } from 'writefence/express'
import { bearing, destination, versions } from './harness.ts'
import { guardedRoute, type Options } from './routes.ts'

describe.each(versions)('%s, hooks', (_, express) => {
  describe.each(['write', 'handler'] as const)("protect: '%s'", (protect) => {
    const setUp = (options: Options = {}) => guardedRoute(express, protect, options)

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
        expect(answer.body).toMatchObject({ jobId: 'other', generation: 7 })
        expect(answer.body.detail).toContain('it is for another job')
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
          expect(answer.body.detail).toContain('the job id of the route ')
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
        [undefined, 403, 'forbidden', 'the request belongs to no scope'],
        [null, 403, 'forbidden', 'the request belongs to no scope'],
        [['a', 'b'], 400, 'request_malformed', 'the scope must be'],
        [7, 400, 'request_malformed', 'the scope must be'],
        ['a\nb', 400, 'request_malformed', 'the scope must '],
      ])('that gives %j is a refusal, not the empty scope', async (given, status, code, says) => {
        const { send, guard, runs } = setUp({ scope: async () => given as never })
        const answer = await send(bearing(7, 'op'))
        expect([answer.status, answer.body.code]).toEqual([status, code])
        expect(answer.body.detail).toContain(says)
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
        ['a rejection with nothing', () => Promise.reject()],
        ['a rejection with null', () => Promise.reject(null)],
        ['a rejection with a text', () => Promise.reject('bad signature')],
        ['a status that is none', () => Promise.reject({ status: 'bad signature' })],
      ])('%s is a rejection', async (_name, verifyToken) => {
        const { send, runs } = setUp({ verifyToken: verifyToken as never })
        const answer = await send(bearing(7, 'op'))
        expect([answer.status, answer.body.code, runs()]).toEqual([403, 'token_rejected', 0])
        expect(JSON.stringify(answer.body)).not.toContain('signature')
      })

      it('what it threw is for those who run the place: the cause of the refusal', async () => {
        const { guard } = destination()
        const cause = new Error('bad signature')
        const app = express()
        app.post('/', fencing(guard, { protect, verifyToken: () => Promise.reject(cause) }))
        const errors: unknown[] = []
        app.use((error: unknown, _req: Request, res: Response, _next: unknown) => {
          errors.push(error)
          res.end()
        })
        await request(app).post('/').set(bearing(7, 'op'))
        const known = { code: 'token_rejected', jobId: 'job', generation: 7, cause }
        expect(errors).toEqual([expect.objectContaining(known)])
        expect(String(errors[0])).toContain('it is not authentic')
      })

      it('an error with a status of its own is the answer', async () => {
        const down = Object.assign(new Error('key server'), { status: 502 })
        const { send } = setUp({ verifyToken: () => Promise.reject(down) })
        expect((await send(bearing(7, 'op'))).status).toBe(502)
        const full = Object.assign(new Error('key server'), { statusCode: 507 })
        const { send: third } = setUp({ verifyToken: () => Promise.reject(full) })
        expect((await third(bearing(7, 'op'))).status).toBe(507)
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
      // It is no refusal, so that report mode does not let it in.
      const report = setUp({ ...options, mode: 'report' })
      expect((await report.send(bearing(7, 'op'))).status).toBe(500)
      expect(report.runs()).toBe(0)
    })

    it('a fingerprint that is none is named', async () => {
      const { send } = setUp({ fingerprint: () => 7 as never })
      expect((await send(bearing(7, 'op'))).text).toContain('fingerprint must')
    })
  })
})
