import { randomBytes } from 'node:crypto'
import { once as eventOf } from 'node:events'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { clearInterval as clearRealInterval, setInterval as realInterval } from 'node:timers'
import { gunzipSync } from 'node:zlib'
import compression from 'compression'
import type { Request, RequestHandler, Response } from 'express'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { DecisionEvent } from 'writefence'
import { atEnd, bearing, listening, once, plain, signal, versions } from './harness.ts'
import { effectRoute, type Handler } from './routes.ts'

const DEADLINE = 60_000
/** How long a client may take nothing after it. */
const PATIENCE = 1_000
const piece = randomBytes(100_000)
const settled = () => once<DecisionEvent>('writefence:decision', ({ verb }) => verb === 'effect')

function* pieces() {
  for (let index = 0; index < 300; index += 1) yield piece
}

/** Tells when the source has to wait for its client. */
function piped(blocked: () => void): Handler {
  return (_req, res) => Readable.from(pieces()).once('pause', blocked).pipe(res.type('text/plain'))
}

/** The client is behind now and then while the network's buffers fill up, and then for good. */
function timePasses(): void {
  const clock = realInterval(() => vi.advanceTimersByTime(PATIENCE), 20)
  atEnd(() => clearRealInterval(clock))
}

/** A client that sends the request of `post()` and reads nothing of its answer. */
async function silent(port: number, headers: Record<string, string> = {}): Promise<void> {
  const socket = connect(port, '127.0.0.1').pause()
  socket.on('error', () => {})
  atEnd(() => socket.destroy())
  const all = { Host: 'a', 'Content-Length': 0, ...bearing(7, 'op'), ...headers }
  const lines = Object.entries(all).map((each) => each.join(': '))
  socket.write(`${['POST / HTTP/1.1', ...lines].join('\r\n')}\r\n\r\n`)
}

describe.each(versions)('%s, a client that does not read its answer', (_, express) => {
  // Only the timer of the deadline: the network is real.
  beforeEach(
    () =>
      void vi.useFakeTimers({
        toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'],
      }),
  )
  afterEach(() => void vi.useRealTimers())

  const squeeze = compression({ threshold: 0 })

  it.each<[string, (blocked: () => void) => Handler, ...RequestHandler[]]>([
    ['a pipe', piped],
    ['a pipe, compressed before the guard', piped, squeeze],
    [
      'a pipe, compressed after the guard',
      (blocked) => (req, res) => squeeze(req, res, () => piped(blocked)(req, res)),
    ],
    [
      'a handler that waits for it',
      (blocked) => async (_req, res) => {
        for (const each of pieces()) {
          if (res.write(each)) continue
          blocked()
          await eventOf(res, 'drain')
        }
        res.end()
      },
    ],
  ])('holds %s up no longer than its deadline', async (_name, make, ...middleware) => {
    const blocked = signal()
    const handler = make(() => blocked.fire())
    const options = { deadlineMs: DEADLINE, fingerprint: false } as const
    const { app, post, guard, runs } = effectRoute(express, handler, options, undefined, middleware)
    const end = settled()
    await silent(await listening(app), { 'Accept-Encoding': 'gzip' })
    await blocked.promise
    vi.advanceTimersByTime(DEADLINE - 1)
    expect(await guard.inspect('job')).toMatchObject({ inFlight: 1 })
    vi.advanceTimersByTime(1)
    expect(await guard.inspect('job')).toMatchObject({ inFlight: 1 })
    timePasses()
    expect((await end).decision).toBe('applied')
    expect(await guard.inspect('job')).toMatchObject({ inFlight: 0, overdue: 0, unknown: 0 })
    expect((await post()).headers['idempotent-replayed']).toBe('true')
    expect(runs()).toBe(1)
  })

  it('nor one that begins to answer after it, and that has asked whether it has', async () => {
    const [began, go, gone] = [signal(), signal(), signal()]
    const handler = async (req: Request, res: Response) => {
      req.socket.once('close', () => gone.fire())
      began.fire()
      await go.promise
      for (const each of pieces()) {
        if (!res.write(each)) await eventOf(res, 'drain')
        if (!res.headersSent) throw new Error('it has answered')
      }
      res.end()
    }
    const { app, post } = effectRoute(express, handler, {
      deadlineMs: DEADLINE,
      fingerprint: false,
    })
    const end = settled()
    await silent(await listening(app))
    await began.promise
    vi.advanceTimersByTime(DEADLINE)
    go.fire()
    timePasses()
    expect((await end).decision).toBe('applied')
    await gone.promise
    expect((await post()).headers['idempotent-replayed']).toBe('true')
  })

  it('but one that does read has all of an answer that takes longer', async () => {
    const [began, go] = [signal(), signal()]
    const handler: Handler = async (_req, res) => {
      for (let index = 0; index < 3; index += 1) res.write('12345')
      began.fire()
      await go.promise
      res.write('6789')
      res.end('.')
    }
    const options = { deadlineMs: DEADLINE, maxBodyBytes: 3 }
    const { app } = effectRoute(express, handler, options)
    const whole = plain(await listening(app), { headers: bearing(7, 'op') })
    await began.promise
    vi.advanceTimersByTime(DEADLINE)
    go.fire()
    expect((await whole).body.toString()).toBe('1234512345123456789.')
  })
  it('nor is one cut that reads pieces longer than the buffer', async () => {
    const [began, go] = [signal(), signal()]
    const handler: Handler = async (_req, res) => {
      began.fire()
      await go.promise
      for (let index = 0; index < 6; index += 1) {
        if (res.write(piece)) continue
        vi.advanceTimersByTime(PATIENCE)
        await eventOf(res, 'drain')
      }
      res.end()
    }
    const { app } = effectRoute(express, handler, { deadlineMs: DEADLINE, maxBodyBytes: 3 })
    const whole = plain(await listening(app), { headers: bearing(7, 'op') })
    await began.promise
    vi.advanceTimersByTime(DEADLINE)
    go.fire()
    expect((await whole).body.byteLength).toBe(6 * piece.byteLength)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('nor one that has read all there is, if what compresses it has more', async () => {
    const [behind, go] = [signal(), signal()]
    let sending: Response | undefined
    const handler: Handler = async (_req, res) => {
      sending = res.type('text/plain')
      while (res.write(piece));
      behind.fire()
      await go.promise
      res.end('end')
    }
    const options = { deadlineMs: DEADLINE, maxBodyBytes: 3 }
    const { app } = effectRoute(express, handler, options, undefined, [squeeze])
    const headers = { ...bearing(7, 'op'), 'Accept-Encoding': 'gzip' }
    const whole = plain(await listening(app), { headers })
    await behind.promise
    do await new Promise((resolve) => setImmediate(resolve))
    while (sending?.writableNeedDrain)
    vi.advanceTimersByTime(DEADLINE + 3 * PATIENCE)
    go.fire()
    expect(gunzipSync((await whole).body).toString()).toMatch(/end$/)
  })
})
