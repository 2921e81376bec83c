import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import compression from 'compression'
import type { Request, Response } from 'express'
import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { fencing } from 'writefence/express'
import { bearing, destination, listening, plain, versions } from './harness.ts'

const text = 'compressible '.repeat(500)
const both = [true, false]

describe.each(versions)('%s, compression', (_, express) => {
  const send = (res: Response, style: string) => {
    res.status(201).type('text/plain')
    if (style === 'send') return res.send(text)
    for (let index = 0; index < text.length; index += 1000) {
      res.write(text.slice(index, index + 1000))
    }
    return res.end()
  }

  describe.each(['before', 'after'])('R89: mounted %s the guard', (where) => {
    describe.each(['send', 'write'])('of an answer that is made by %s', (style) => {
      it.each(both.flatMap((first) => both.map((retry) => [first, retry] as const)))(
        'the body is right, with gzip first: %s, on the retry: %s',
        async (first, retry) => {
          const { guard } = destination()
          const fence = fencing(guard, { protect: 'handler', requireOperationId: true })
          const app = express()
          const squeeze = compression({ threshold: 0 })
          const chain = where === 'before' ? [squeeze, fence] : [fence, squeeze]
          let runs = 0
          app.post('/', ...chain, (_req: Request, res: Response) => {
            runs += 1
            send(res, style)
          })
          const post = (gzip: boolean) =>
            request(app)
              .post('/')
              .set(bearing(7, 'op'))
              .set('Accept-Encoding', gzip ? 'gzip' : 'identity')
          const one = await post(first)
          expect([one.status, one.text]).toEqual([201, text])
          expect(one.headers['content-encoding']).toBe(first ? 'gzip' : undefined)
          expect(one.headers['fencing-verdict']).toBe('applied;highest=7')
          const two = await post(retry)
          expect([two.status, two.text]).toEqual([201, text])
          // Only what sits before the guard sees a replay.
          expect(two.headers['content-encoding']).toBe(
            retry && where === 'before' ? 'gzip' : undefined,
          )
          expect(two.headers['idempotent-replayed']).toBe('true')
          expect(two.headers['content-type']).toBe(one.headers['content-type'])
          expect(runs).toBe(1)
        },
      )
    })
  })

  it('R92: an answer over the limit comes through whole, wherever compression is', async () => {
    for (const where of ['before', 'after']) {
      const { guard } = destination()
      const fence = fencing(guard, { protect: 'handler', maxBodyBytes: 10 })
      const app = express()
      const squeeze = compression({ threshold: 0 })
      app.post('/', ...(where === 'before' ? [squeeze, fence] : [fence, squeeze]), (_req, res) => {
        send(res, 'write')
      })
      const one = await request(app).post('/').set(bearing(7, 'op'))
      expect([one.status, one.text, one.headers['content-encoding']]).toEqual([201, text, 'gzip'])
      const two = await request(app).post('/').set(bearing(7, 'op'))
      expect([two.status, two.text ?? '', two.headers['idempotent-replayed']]).toEqual([
        201,
        '',
        'true',
      ])
    }
  })

  it.each([
    ['gzip', gzipSync, text],
    ['x-gzip', gzipSync, text],
    ['deflate', deflateSync, text],
    ['br', brotliCompressSync, text],
    ['gzip, br', (body: string) => brotliCompressSync(gzipSync(body)), ''],
    ['zstd', (body: string) => Buffer.from(body), ''],
    ['gzip', (body: string) => Buffer.from(body), ''],
  ])(
    'what a handler has encoded as %s itself is recorded as it was, or without',
    async (encoding, encode, kept) => {
      const { guard } = destination()
      const app = express()
      app.post('/', fencing(guard, { protect: 'handler' }), (_req, res) => {
        res.setHeader('Content-Encoding', encoding)
        res.setHeader('Content-Type', 'text/plain')
        res.end(encode(text))
      })
      const one = await plain(await listening(app), { headers: bearing(7, 'op') })
      expect(one.body.equals(Buffer.from(encode(text)))).toBe(true)
      const two = await request(app).post('/').set(bearing(7, 'op'))
      expect([two.status, two.text ?? '']).toEqual([200, kept])
      expect(two.headers).not.toHaveProperty('content-encoding')
      expect(two.headers['content-type']).toBe(kept === '' ? undefined : 'text/plain')
    },
  )

  it('a small body that would decode to more than the limit is not kept', async () => {
    const { guard } = destination()
    const app = express()
    app.post('/', fencing(guard, { protect: 'handler', maxBodyBytes: 1000 }), (_req, res) => {
      res.setHeader('Content-Encoding', 'gzip')
      res.end(gzipSync(text))
    })
    expect((await request(app).post('/').set(bearing(7, 'op'))).text).toBe(text)
    expect((await request(app).post('/').set(bearing(7, 'op'))).text ?? '').toBe('')
  })
})
