import { Readable } from 'node:stream'
import compression from 'compression'
import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { NotAppliedError } from 'writefence'
import { fencing } from 'writefence/express'
import { bearing, destination, faults, signal, versions } from './harness.ts'
import { type Writer, writeRoute } from './routes.ts'

describe.each(versions)("%s, protect: 'write'", (_, express) => {
  const setUp = (writer: Writer) => writeRoute(express, writer)

  describe('a success without a write', () => {
    const successes: readonly (readonly [string, Writer])[] = [
      ['json', (_b, _q, res) => res.cookie('a', '1').status(201).json({ secret: 1 })],
      ['end', (_b, _q, res) => res.end('secret')],
      [
        'write and end',
        (_b, _q, res) => {
          res.write('secret')
          res.write('secret')
          res.end()
        },
      ],
      ['writeHead', (_b, _q, res) => res.writeHead(204, { 'X-A': 'b' }).end()],
      [
        'flushHeaders',
        (_b, _q, res) => {
          res.flushHeaders()
          res.end('secret')
        },
      ],
      ['a pipe', (_b, _q, res) => Readable.from(['secret', 'secret']).pipe(res)],
      ['sendFile', (_b, _q, res) => res.sendFile(new URL(import.meta.url).pathname)],
      [
        'a refusal that is swallowed',
        async (bound, _q, res) => {
          await bound.effect(() => Promise.reject(new NotAppliedError())).catch(() => {})
          res.json({ ok: true })
        },
      ],
    ]

    it.each(successes)('by %s is answered 500, and told', async (_name, handler) => {
      const seen = faults()
      const { send } = setUp(handler)
      const answer = await send(7, 'op')
      expect([answer.status, answer.body.status]).toEqual([500, 500])
      expect(answer.headers['content-type']).toBe('application/problem+json')
      expect(answer.headers['cache-control']).toBe('no-store')
      expect(answer.headers).not.toHaveProperty('set-cookie')
      expect(JSON.stringify(answer.body)).not.toContain('secret')
      expect(answer.body.detail).toContain('noEffect()')
      expect(seen).toEqual([
        {
          fault: 'unguarded_success',
          scope: '',
          jobId: 'job',
          generation: 7,
          operationId: 'op',
        },
      ])
    })

    it('is not said to be unguarded where it went past the fence of the request', async () => {
      const bank = destination()
      const { send } = writeRoute(
        express,
        async (bound, _req, res) => {
          const { result } = await bank.guard.write(bound.intent, bank.credit(5))
          res.status(201).json(result)
        },
        {},
        bank,
      )
      const answer = await send(7, 'op')
      expect([answer.status, bank.credits()]).toEqual([500, [5]])
      expect(answer.body.detail).toContain('whether what it did is guarded is not known here')
    })

    it('is swallowed to its end: a handler that waits for its callbacks goes on', async () => {
      const heard: string[] = []
      const end = signal()
      const { send } = setUp(async (_b, _q, res) => {
        await new Promise((resolve) => res.write('secret', resolve))
        heard.push('written')
        await new Promise<void>((resolve) => res.end('secret', resolve))
        end.fire(void heard.push('ended'))
      })
      await send(7, 'op')
      await end.promise
      expect(heard).toEqual(['written', 'ended'])
    })

    it('is one that does not wait for its write', async () => {
      let written: Promise<unknown> | undefined
      const { send } = setUp((bound, _q, res) => {
        written = bound.write(() => 1)
        res.end('secret')
      })
      expect((await send(7, 'op')).status).toBe(500)
      await written
    })

    it('is what a safe request is answered with', async () => {
      const { app } = setUp((_b, _q, res) => res.json({ ok: true }))
      const answer = await request(app).get('/credits').set(bearing(7))
      expect([answer.status, answer.body]).toEqual([200, { ok: true }])
    })

    it.each(['before', 'after'])('is found with compression %s the guard', async (where) => {
      const { guard } = destination()
      const fence = fencing(guard)
      const squeeze = compression({ threshold: 0 })
      const app = express()
      app.post('/', ...(where === 'before' ? [squeeze, fence] : [fence, squeeze]), (_q, res) => {
        res.type('text/plain').send('secret '.repeat(1000))
      })
      const answer = await request(app).post('/').set(bearing(7, 'op'))
      expect([answer.status, answer.body.status]).toEqual([500, 500])
    })

    it.each<[string, Writer, number]>([
      [
        'noEffect()',
        (bound, _q, res) => {
          bound.noEffect()
          res.json({})
        },
        200,
      ],
      ['a choice', (_b, _q, res) => res.status(300).json({}), 300],
      ['a redirect', (_b, _q, res) => res.redirect('/'), 302],
      ['an error status', (_b, _q, res) => res.status(400).json({}), 400],
    ])('%s is let through', async (_name, handler, status) => {
      const seen = faults()
      const { send } = setUp(handler)
      const answer = await send(7, 'op')
      expect(answer.status).toBe(status)
      expect(answer.headers['fencing-verdict']).toBe('passed;highest=7')
      expect(seen).toEqual([])
    })
  })
})
