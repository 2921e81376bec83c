import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import compression from 'compression'
import type { RequestHandler } from 'express'
import { describe, expect, it } from 'vitest'
import type { DecisionEvent } from 'writefence'
import { atEnd, once, signal, versions } from './harness.ts'
import { effectRoute, type Handler, type Options } from './routes.ts'

const settled = () => once<DecisionEvent>('writefence:decision', ({ verb }) => verb === 'effect')
const big = randomBytes(3_000_000)

function bigFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'writefence-'))
  atEnd(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'big.txt')
  writeFileSync(path, big)
  return path
}

describe.each(versions)('%s, a handler that is interrupted', (_, express) => {
  it('R77: the client hangs up, the handler ends: a retry gets the answer', async () => {
    const [began, gone, go] = [signal(), signal(), signal()]
    const { start, post, runs } = effectRoute(express, async (req, res) => {
      req.socket.once('close', () => gone.fire())
      began.fire()
      await go.promise
      res.status(201).json({ done: true })
    })
    const { hangUp } = await start()
    await began.promise
    hangUp()
    await gone.promise
    const end = settled()
    go.fire()
    expect((await end).decision).toBe('applied')
    const again = await post()
    expect([again.status, again.body]).toEqual([201, { done: true }])
    expect(again.headers['idempotent-replayed']).toBe('true')
    expect(runs()).toBe(1)
  })

  it('R77: the handler hears of the hang-up only once it has ended', async () => {
    const [began, gone, go, closed] = [signal(), signal(), signal(), signal()]
    const heard: string[] = []
    const { start } = effectRoute(express, async (req, res) => {
      res.once('close', () => closed.fire(void heard.push('close')))
      req.socket.once('close', () => gone.fire())
      began.fire()
      await go.promise
      heard.push('end')
      res.end()
    })
    const { hangUp } = await start()
    await began.promise
    hangUp()
    await gone.promise
    go.fire()
    await closed.promise
    expect(heard).toEqual(['end', 'close'])
  })

  const squeeze = compression({ threshold: 0 })

  it.each<[string, Handler, ...RequestHandler[]]>([
    ['a pipe', (_req, res) => Readable.from(pieces()).pipe(res)],
    ['a pipeline', (_req, res) => pipeline(Readable.from(pieces()), res)],
    ['sendFile', (_req, res) => res.sendFile(bigFile())],
    [
      'a pipe, compressed before the guard',
      (_req, res) => Readable.from(pieces()).pipe(res.type('text/plain')),
      squeeze,
    ],
    [
      'a pipe, compressed after the guard',
      (req, res) => squeeze(req, res, () => Readable.from(pieces()).pipe(res.type('text/plain'))),
    ],
    [
      'a large body, compressed after the guard',
      (req, res) => squeeze(req, res, () => res.type('text/plain').send(big)),
    ],
  ])(
    'R98: the client drops in the middle of %s: it is settled all the same',
    async (_name, handler, ...middleware) => {
      const { start, post, runs } = effectRoute(express, handler, {}, undefined, middleware)
      const end = settled()
      const { sent, hangUp } = await start({ 'Accept-Encoding': 'gzip' })
      sent.once('response', (answer) => answer.once('data', hangUp))
      expect((await end).decision).toBe('applied')
      const again = await post()
      expect([again.status, again.headers['idempotent-replayed']]).toEqual([200, 'true'])
      expect(runs()).toBe(1)
    },
  )

  it('R98: sendFile to a client that is gone already is settled too', async () => {
    const [began, gone, go] = [signal(), signal(), signal()]
    const path = bigFile()
    const { start, post } = effectRoute(express, async (req, res) => {
      req.socket.once('close', () => gone.fire())
      began.fire()
      await go.promise
      res.sendFile(path)
    })
    const { hangUp } = await start()
    await began.promise
    hangUp()
    await gone.promise
    const end = settled()
    go.fire()
    expect((await end).decision).toBe('applied')
    expect((await post()).headers['idempotent-replayed']).toBe('true')
  })

  it('R98: so is one whose client had gone before the handler ran', async () => {
    const [began, gone, go] = [signal(), signal(), signal()]
    const path = bigFile()
    const options: Options = {
      jobId: async (req) => {
        req.socket.once('close', () => gone.fire())
        began.fire()
        await go.promise
        return 'job'
      },
    }
    const { start, post } = effectRoute(express, (_req, res) => res.sendFile(path), options)
    const { hangUp } = await start()
    await began.promise
    hangUp()
    await gone.promise
    const end = settled()
    go.fire()
    expect((await end).decision).toBe('applied')
    expect((await post()).headers['idempotent-replayed']).toBe('true')
  })

  it('R100: a handler that destroys its response leaves the outcome unknown', async () => {
    const { post, runs } = effectRoute(express, (_req, res) => {
      res.write('half')
      res.destroy()
    })
    await expect(post()).rejects.toThrow('socket hang up')
    const again = await post()
    expect([again.status, again.body.code]).toEqual([409, 'outcome_unknown'])
    expect(runs()).toBe(1)
  })

  it('R100: one that destroys it after a part has gone out, too', async () => {
    const { post } = effectRoute(express, (_req, res) => {
      res.write(big)
      res.write(big)
      res.destroy()
    })
    await expect(post()).rejects.toThrow()
    expect((await post()).body.code).toBe('outcome_unknown')
  })

  it('R76, R80: while it runs, a duplicate is in flight, another body a mismatch', async () => {
    const [began, go] = [signal(), signal()]
    const { post, runs } = effectRoute(express, async (_req, res) => {
      began.fire()
      await go.promise
      res.status(201).json({ done: true })
    })
    const first = post(7, 'op', { a: 1 }).then((answer) => answer)
    await began.promise
    const mismatch = await post(7, 'op', { a: 2 })
    expect([mismatch.status, mismatch.body.code]).toEqual([422, 'mismatch'])
    const inFlight = await post(7, 'op', { a: 1 })
    expect([inFlight.status, inFlight.body.code]).toEqual([409, 'in_flight'])
    expect(inFlight.body.retryable).toBe(true)
    expect(inFlight.headers['retry-after']).toMatch(/^[1-5]$/)
    const newer = await post(8, 'other', {})
    expect([newer.status, newer.body.code]).toEqual([409, 'in_flight'])
    go.fire()
    expect((await first).status).toBe(201)
    expect((await post(7, 'op', { a: 1 })).body.code).toBe('stale')
    expect((await post(8, 'op', { a: 1 })).body).toEqual({ done: true })
    expect(runs()).toBe(1)
  })

  it('R104: many at once: one effect, the others are in flight or get the answer', async () => {
    const { post, runs } = effectRoute(express, (_req, res) => res.status(201).json({ done: true }))
    const all = await Promise.all(Array.from({ length: 20 }, () => post()))
    for (const { status, body } of all) {
      expect([201, 409]).toContain(status)
      expect(body).toEqual(
        status === 201 ? { done: true } : expect.objectContaining({ code: 'in_flight' }),
      )
    }
    expect(runs()).toBe(1)
  })
})

function* pieces() {
  for (let index = 0; index < 30; index += 1)
    yield big.subarray(index * 100_000, (index + 1) * 100_000)
}
