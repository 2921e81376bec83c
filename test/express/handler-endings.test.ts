import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { fencing } from 'writefence/express'
import { bearing, destination, faults, listening, raw, signal, versions } from './harness.ts'
import { effectRoute, type Handler, type Options } from './routes.ts'

const status =
  (code: number): Handler =>
  (_, res) =>
    res.status(code).json({ code })
const throws =
  (error: unknown): Handler =>
  () => {
    throw error
  }

describe.each(versions)('%s, how a handler ends', (_, express) => {
  const setUp = (handler: Handler, options: Options = {}, guardOptions = {}) =>
    effectRoute(express, handler, options, destination(guardOptions))

  describe('an answer that proves that nothing was done', () => {
    it.each([
      ['400', status(400)],
      ['409', status(409)],
      ['499', status(499)],
      ['503', status(503)],
      ['a thrown error with the status 422', throws(Object.assign(new Error(), { status: 422 }))],
    ])('R79: %s releases the operation: the retry runs again', async (_name, handler) => {
      const { post, runs, guard } = setUp(handler)
      const first = await post()
      expect(first.headers['fencing-verdict']).toBe('passed;highest=7')
      expect((await guard.inspect('job'))?.unknown).toBe(0)
      const second = await post()
      expect(second.status).toBe(first.status)
      expect(second.headers).not.toHaveProperty('idempotent-replayed')
      expect(runs()).toBe(2)
    })

    it('R52: keeps the fence all the same', async () => {
      const { post } = setUp(status(400))
      await post(8)
      const stale = await post(7, 'other')
      expect([stale.status, stale.body.code]).toEqual([412, 'stale'])
    })
  })

  describe('an error that proves nothing', () => {
    it.each([
      ['500', status(500)],
      ['502', status(502)],
      ['a thrown error', throws(new Error('boom'))],
      ['a rejection', async () => Promise.reject(new Error('boom'))],
    ])('%s is answered, and leaves the outcome unknown', async (_name, handler) => {
      const { post, runs } = setUp(handler)
      const first = await post()
      expect(first.status).toBeGreaterThanOrEqual(500)
      expect(first.headers['fencing-verdict']).toBe('outcome_unknown;highest=7')
      const second = await post()
      expect([second.status, second.body.code]).toEqual([409, 'outcome_unknown'])
      expect(second.body.retryable).toBe(false)
      expect(runs()).toBe(1)
      expect((await post(7, 'another')).status).toBe(first.status)
    })

    it("errorsMean: 'not_applied' takes it for proof", async () => {
      const { post, runs } = setUp(status(500), { errorsMean: 'not_applied' })
      expect((await post()).headers['fencing-verdict']).toBe('passed;highest=7')
      expect((await post()).status).toBe(500)
      expect(runs()).toBe(2)
    })

    it("onUnknown: 'rerun' runs it again", async () => {
      const { post, runs } = setUp(status(500), { onUnknown: 'rerun' })
      await post()
      await post()
      expect(runs()).toBe(2)
    })

    it('onUnknown may find out: its result is replayed as JSON', async () => {
      const onUnknown = async () => ({ status: 'applied', result: { id: 5 } }) as const
      const { post, runs } = setUp(status(500), { onUnknown })
      await post()
      const second = await post()
      expect([second.status, second.body]).toEqual([200, { id: 5 }])
      expect(second.headers['fencing-verdict']).toBe('replayed;highest=7')
      expect(runs()).toBe(1)
    })

    it('R71: an operator may resolve it, without a result: 204', async () => {
      const { post, guard } = setUp(status(500))
      await post()
      await guard.resolve({ jobId: 'job', operationId: 'op' }, { status: 'applied' })
      const second = await post()
      expect([second.status, second.headers['idempotent-replayed']]).toEqual([204, 'true'])
    })
  })

  describe('R79: recordable', () => {
    it('records what it says is final: a 409 is replayed, a 400 is not', async () => {
      const options = { recordable: (code: number) => (code === 409 ? true : undefined) }
      const final = setUp(status(409), options)
      await final.post()
      const again = await final.post()
      expect([again.status, again.body]).toEqual([409, { code: 409 }])
      expect(again.headers['fencing-verdict']).toBe('replayed;highest=7')
      expect(final.runs()).toBe(1)
      const fixable = setUp(status(400), options)
      await fixable.post()
      await fixable.post()
      expect(fixable.runs()).toBe(2)
    })

    it('releases what it says proves nothing', async () => {
      const { post, runs } = setUp(status(202), { recordable: (code) => code !== 202 })
      expect((await post()).headers['fencing-verdict']).toBe('passed;highest=7')
      await post()
      expect(runs()).toBe(2)
    })

    it('that throws is an error: the outcome is unknown', async () => {
      const recordable = () => {
        throw new Error('bug')
      }
      const { post, runs } = setUp(status(404), { recordable })
      const first = await post()
      expect([first.status, first.body]).toEqual([500, { failed: true }])
      expect(first.headers['fencing-verdict']).toBe('outcome_unknown;highest=7')
      expect((await post()).body.code).toBe('outcome_unknown')
      expect(runs()).toBe(1)
    })
  })

  describe('an answer sent twice', () => {
    it('is the first one, on the wire and on record', async () => {
      const app = express()
      app.post('/', fencing(destination().guard, { protect: 'handler' }), (_req, res) => {
        res.status(201).json({ first: true })
        res.status(500).json({ second: true })
      })
      const post = () => request(app).post('/').set(bearing(7, 'op'))
      // The error after the answer makes Express cut the connection, as it does without a guard.
      const [first, again] = [await post(), await post()]
      expect(first.body).toEqual({ first: true })
      expect([again.status, again.body]).toEqual([201, { first: true }])
    })

    it('in parts: what comes after the end is refused, and nothing crashes', async () => {
      const errors: unknown[] = []
      const { post } = setUp((_req, res) => {
        res.end('whole')
        errors.push(res.write('more', (error) => errors.push(error?.message)))
        res.end('again', () => errors.push('called'))
        errors.push([res.headersSent, res.writableEnded])
      })
      expect((await post()).text).toBe('whole')
      expect((await post()).text).toBe('whole')
      expect(errors).toEqual([false, [true, true], 'write after end', 'called'])
    })

    it('looks sent to the handler as soon as it has sent it', async () => {
      const seen: unknown[] = []
      const { post } = setUp((_req, res) => {
        seen.push(res.headersSent, res.writableEnded)
        res.writeHead(201, { A: '1' })
        seen.push(res.headersSent, res.writableEnded)
        for (const change of [
          () => res.setHeader('A', '2'),
          () => res.appendHeader('A', '2'),
          () => res.removeHeader('A'),
          () => res.writeHead(500),
        ]) {
          expect(change).toThrow(expect.objectContaining({ code: 'ERR_HTTP_HEADERS_SENT' }))
        }
        res.statusCode = 500
        res.end()
      })
      const first = await post()
      expect([first.status, first.headers.a]).toEqual([201, '1'])
      expect(seen).toEqual([false, false, true, false])
      expect((await post()).status).toBe(201)
    })

    it.each<[string, Handler]>([
      ['writeHead(99)', (_req, res) => res.writeHead(99).end()],
      [
        'statusCode 1000',
        (_req, res) => {
          res.statusCode = 1000
          res.end()
        },
      ],
    ])('%s throws in the handler, as it would without a guard', async (_name, handler) => {
      const { post } = setUp(handler)
      const answer = await post()
      expect([answer.status, answer.body]).toEqual([500, { failed: true }])
      expect((await post()).body.code).toBe('outcome_unknown')
    })

    it('a status message goes with its status', async () => {
      const { app } = setUp((_req, res) => res.writeHead(201, 'Made').end())
      const head = [
        'POST / HTTP/1.1',
        ...Object.entries(bearing(7, 'op')).map((each) => each.join(': ')),
      ]
      expect(await raw(await listening(app), head)).toMatch(/^HTTP\/1.1 201 Made\r\n/)
    })

    it('the callback of the end is called once the answer has gone out', async () => {
      const finished = signal<boolean>()
      const { post } = setUp((_req, res) => {
        res.end('x', () => finished.fire(res.writableFinished))
      })
      await post()
      expect(await finished.promise).toBe(true)
    })

    it('a chunk that is none throws as it would without a guard', async () => {
      const { post } = setUp((_req, res) => res.end(5 as never))
      expect((await post()).body).toEqual({ failed: true })
    })
  })

  describe('inside the handler', () => {
    it('the operation id of the request is taken: a write needs its own', async () => {
      const { post, fence, credit, credits } = setUp(async (req, res) => {
        const bound = fence.of(req)
        await expect(bound.write(credit(1) as never)).rejects.toThrow(TypeError)
        const written = await bound.write(credit(2) as never, { operationId: 'part' })
        res.json(written.result)
      })
      const first = await post()
      expect(first.body).toEqual({ balance: 2 })
      expect(credits()).toEqual([2])
    })
  })

  it('R92: a body over the limit is sent, recorded without it, and not run again', async () => {
    const big = 'x'.repeat(5_000_000)
    const { post, runs } = setUp((_req, res) => res.location('/big').type('text/plain').send(big))
    const first = await post()
    expect(first.text).toHaveLength(big.length)
    expect(first.headers['content-length']).toBe('5000000')
    const again = await post()
    expect(again.status).toBe(200)
    expect(again.text ?? '').toBe('')
    expect(again.headers.location).toBe('/big')
    expect(again.headers).not.toHaveProperty('content-type')
    expect(again.headers['idempotent-replayed']).toBe('true')
    expect(runs()).toBe(1)
  })

  it('maxBodyBytes: a body of just that size is kept, one byte more is not', async () => {
    const kept = setUp((_req, res) => res.send('12345'), { maxBodyBytes: 5 })
    await kept.post()
    expect((await kept.post()).text).toBe('12345')
    const dropped = setUp((_req, res) => res.send('123456'), { maxBodyBytes: 5 })
    await dropped.post()
    expect((await dropped.post()).text ?? '').toBe('')
  })

  it('what the codec cannot spell is done all the same, and is not run again', async () => {
    const codec = {
      encode: () => {
        throw new TypeError('not today')
      },
      decode: JSON.parse,
    }
    const seen = faults()
    const { post, runs } = setUp(status(201), {}, { codec })
    const first = await post()
    expect([first.status, first.body]).toEqual([201, { code: 201 }])
    expect(first.headers['fencing-verdict']).toBe('applied;highest=7')
    expect(seen.map((each) => each.fault)).toEqual(['not_recorded'])
    expect((await post()).status).toBe(204)
    expect(runs()).toBe(1)
  })
})
