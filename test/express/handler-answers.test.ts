import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type request from 'supertest'
import { describe, expect, it } from 'vitest'
import { versions } from './harness.ts'
import { effectRoute, type Handler } from './routes.ts'

const file = new URL(import.meta.url).pathname

const answers: readonly (readonly [name: string, handler: Handler])[] = [
  ['R88: json, 201 with Location', (_, res) => res.location('/c/1').status(201).json({ a: 'é' })],
  ['R88: text/csv with a charset', (_, res) => res.type('text/csv; charset=latin1').send('a,b\n')],
  ['R88: 204', (_, res) => res.sendStatus(204)],
  ['205', (_, res) => res.status(205).end()],
  ['a redirect', (_, res) => res.redirect(303, '/elsewhere')],
  ['a Buffer', (_, res) => res.send(Buffer.from([0, 255, 128]))],
  ['an empty end', (_, res) => res.end()],
  ['an end in latin1', (_, res) => res.type('text/plain').end('é', 'latin1')],
  [
    'write and end',
    (_, res) => {
      res.type('text/plain')
      res.write('a')
      res.write(Buffer.from('b'))
      res.write('Yw==', 'base64')
      res.end('d')
    },
  ],
  [
    'writes that wait for their callbacks',
    async (_, res) => {
      res.type('text/plain')
      await new Promise((resolve) => res.write('a', resolve))
      await new Promise((resolve) => res.write('b', 'utf8', resolve))
      res.end()
    },
  ],
  [
    'a buffer that is used again',
    async (_, res) => {
      const buffer = Buffer.from('one ')
      await new Promise((resolve) => res.type('text/plain').write(buffer, resolve))
      buffer.write('two ')
      res.end(buffer)
    },
  ],
  [
    'writeHead with an object',
    (_, res) => res.writeHead(201, 'Made', { 'Content-Type': 'text/x', ETag: '"1"' }).end('x'),
  ],
  [
    'writeHead with a list',
    (_, res) => {
      res.setHeader('Link', '<gone>')
      res.writeHead(201, ['Content-Type', 'text/x', 'Link', '<b>']).end('x')
    },
  ],
  [
    'flushHeaders',
    (_, res) => {
      res.type('text/plain').flushHeaders()
      res.end('late')
    },
  ],
  ['pipe', (_, res) => Readable.from(['a', 'b', 'c']).pipe(res.type('text/plain'))],
  [
    'a pipe that does not end it',
    (_, res) => {
      const source = Readable.from(['a', 'b'])
      source.once('close', () => setImmediate(() => res.end('c')))
      source.pipe(res.type('text/plain'), { end: false })
    },
  ],
  ['204 with a body that nobody may see', (_, res) => res.status(204).end('secret')],
  ['pipeline', (_, res) => pipeline(Readable.from(['a', 'b']), res.type('text/plain'))],
  ['sendFile', (_, res) => res.sendFile(file)],
  ['download', (_, res) => res.download(file)],
  ['several cookies', (_, res) => res.cookie('a', '1').cookie('b', '2').send('ok')],
]

describe.each(versions)("%s, protect: 'handler'", (_, express) => {
  const setUp = (handler: Handler) => effectRoute(express, handler)

  describe('a status message', () => {
    it('that cannot be sent fails the first caller, and is not in the record', async () => {
      const { post, runs } = setUp((_req, res) => {
        res.statusMessage = 'a\nb'
        res.status(201).json({ done: true })
      })
      const first = await post()
      expect(first.status).toBe(500)
      expect(first.headers['fencing-verdict']).toBe('applied;highest=7')
      const again = await post()
      expect([again.status, again.body]).toEqual([201, { done: true }])
      expect(runs()).toBe(1)
    })

    it.each<[string, Handler]>([
      [
        'an answer',
        (_req, res) => {
          res.status(201).json({ done: true })
          res.statusMessage = 'a\nb'
        },
      ],
      [
        'a head that goes out before the end',
        (_req, res) => {
          res.writeHead(201)
          res.statusMessage = 'a\nb'
          res.write(Buffer.alloc(1_000_000))
          res.write(Buffer.alloc(1_000_000))
          res.end()
        },
      ],
    ])('that comes after %s comes too late', async (_name, handler) => {
      const { post } = setUp(handler)
      expect((await post()).status).toBe(201)
    })
  })

  describe.each(answers)('%s', (_name, handler) => {
    const essence = ({ status, body, text: sent, headers }: request.Response) => ({
      status,
      body,
      sent,
      type: headers['content-type'],
      location: headers.location,
      etag: headers.etag,
      link: headers.link,
    })

    it('is the same answer with a guard, and again on a retry, and runs once', async () => {
      const { post, runs } = setUp(handler)
      const bare = await post(7, 'op', {}, '/bare')
      const first = await post(7, 'op')
      const again = await post(7, 'op')
      const taken = await post(8, 'op')
      expect(essence(first)).toEqual(essence(bare))
      expect(essence(again)).toEqual(essence(bare))
      expect(essence(taken)).toEqual(essence(bare))
      expect(runs()).toBe(1)
      expect(first.headers['fencing-verdict']).toBe('applied;highest=7')
      expect(again.headers['fencing-verdict']).toBe('replayed;highest=7')
      expect(taken.headers['fencing-verdict']).toBe('replayed;highest=8')
      expect(first.headers['set-cookie']).toEqual(bare.headers['set-cookie'])
      expect(first.headers['content-disposition']).toBe(bare.headers['content-disposition'])
      for (const name of ['set-cookie', 'content-disposition', 'last-modified', 'cache-control']) {
        expect(again.headers).not.toHaveProperty(name)
      }
    })

    it('R88: has a length only where it has content', async () => {
      const { post } = setUp(handler)
      for (const { status, headers } of [await post(7, 'op'), await post(7, 'op')]) {
        if (status === 204) expect(headers).not.toHaveProperty('content-length')
        else expect(headers['content-length'] ?? headers['transfer-encoding']).toBeDefined()
      }
    })

    it('R86: is marked as a replay on a retry only', async () => {
      const { post } = setUp(handler)
      expect((await post(7, 'op')).headers).not.toHaveProperty('idempotent-replayed')
      expect((await post(7, 'op')).headers['idempotent-replayed']).toBe('true')
    })
  })
})
