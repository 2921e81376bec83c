import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { LeaseLostError } from 'writefence'
import { parseFencingToken } from '../../src/wire/headers.ts'
import { type Answer, fetching, ok, PLACE, POST, refusal, type Sent } from './fetch-bench.ts'
import { DEADLINE, runBench } from './run-bench.ts'
import { never } from './scripted-lease-store.ts'

const bench = runBench()

describe('lease.fetch', () => {
  it('sends exactly one token and one key, and what it was given', async () => {
    const { sent, outcome } = await fetching(bench, [ok()], async (lease) => {
      const init = { ...POST, headers: { 'X-Trace': 't' }, body: 'amount=1' }
      const response = await lease.fetch(new URL(PLACE), init)
      return [response.status, await response.json()]
    })
    expect(outcome).toMatchObject({ status: 'completed', value: [201, { balance: 1 }] })
    const [{ leaseId } = {}] = bench.store.calls
    expect(sent).toHaveLength(1)
    const [{ url, init, headers, body }] = sent as [Sent]
    expect([url, init.method, body]).toEqual([PLACE, 'POST', 'amount=1'])
    expect(parseFencingToken(headers.get('Fencing-Token') ?? '')).toEqual({
      jobId: 'j',
      generation: 1,
      leaseId,
    })
    expect(headers.get('Idempotency-Key')).toBe('"op-1"')
    expect(headers.get('X-Trace')).toBe('t')
    expect(headers.get('Content-Type')).toMatch('text/plain')
    expect(init.redirect).toBe('manual')
  })

  it('takes a Request, with its method, headers and body', async () => {
    const { sent } = await fetching(bench, [ok()], async (lease) => {
      const request = new Request(PLACE, { method: 'PUT', headers: { 'X-Trace': 't' }, body: 'b' })
      await lease.fetch(request, { operationId: 'ключ' })
    })
    const [{ init, headers, body }] = sent as [Sent]
    expect([init.method, headers.get('X-Trace'), body]).toEqual(['PUT', 't', 'b'])
    expect(headers.get('Idempotency-Key')).toBe('%"%d0%ba%d0%bb%d1%8e%d1%87"')
  })

  it('reads without an operation id, under the token, and needs no verdict for it', async () => {
    const { sent, outcome } = await fetching(bench, [ok({})], async (lease) => {
      for (const method of ['GET', 'HEAD', 'OPTIONS', 'get', undefined]) {
        await lease.fetch(PLACE, method === undefined ? undefined : { method })
      }
    })
    expect(outcome.status).toBe('completed')
    expect(sent.map(({ init }) => init.method)).toEqual(['GET', 'HEAD', 'OPTIONS', 'GET', 'GET'])
    for (const { headers } of sent) {
      expect(headers.has('Fencing-Token')).toBe(true)
      expect(headers.has('Idempotency-Key')).toBe(false)
    }
  })

  it('refuses misuse before anything is sent', async () => {
    const { sent } = await fetching(bench, [ok()], async ({ fetch }) => {
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND']) {
        await expect(fetch(PLACE, { method })).rejects.toThrow(/needs an operationId/)
      }
      await expect(fetch(PLACE, { ...POST, operationId: '' })).rejects.toThrow(/^operationId/)
      await expect(fetch('/credits', POST)).rejects.toThrow(TypeError)
      for (const name of ['Fencing-Token', 'idempotency-key']) {
        const init = { ...POST, headers: { [name]: 'x' } }
        await expect(fetch(PLACE, init)).rejects.toThrow(/is set by lease.fetch/)
      }
      for (const retryForMs of [-1, 0.5, Number.NaN]) {
        await expect(fetch(PLACE, { ...POST, retryForMs })).rejects.toThrow(/^retryForMs/)
      }
    })
    expect(sent).toEqual([])
  })

  it('R44: a failure of the network is ambiguous: the same is sent again', async () => {
    const cut = new TypeError('fetch failed')
    const form = new FormData()
    form.set('file', new Blob(['x'.repeat(100)]), 'x.txt')
    const { sent, outcome } = await fetching(bench, [cut, cut, ok()], async (lease) => {
      return (await lease.fetch(PLACE, { ...POST, body: form })).status
    })
    expect(outcome).toMatchObject({ value: 201 })
    expect(sent).toHaveLength(3)
    for (const name of ['Idempotency-Key', 'Fencing-Token', 'Content-Type']) {
      expect(new Set(sent.map(({ headers }) => headers.get(name))).size).toBe(1)
    }
    // A boundary of its own for each try would make it another request.
    expect(new Set(sent.map(({ body }) => body)).size).toBe(1)
    expect(sent[0]?.body).toContain('x'.repeat(100))
  })

  it('a body that can be read once only is sent again all the same', async () => {
    const stream = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('once'))
        controller.close()
      },
    })
    const { sent } = await fetching(bench, [new TypeError('fetch failed'), ok()], async (lease) => {
      await lease.fetch(PLACE, { ...POST, body: stream, duplex: 'half' } as never)
    })
    expect(sent.map(({ body }) => body)).toEqual(['once', 'once'])
  })

  it('a network that stays away is thrown as fetch does', async () => {
    const cut = new TypeError('fetch failed')
    await fetching(bench, [cut], async (lease) => {
      await expect(lease.fetch(PLACE, { ...POST, retryForMs: 3_000 })).rejects.toBe(cut)
      lease.assertHeld()
    })
  })

  it('is repeated more and more slowly', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0)
    onTestFinished(() => void vi.restoreAllMocks())
    const cut = new TypeError('fetch failed')
    const { sent } = await fetching(bench, [cut, cut, cut, cut, ok()], (lease) =>
      lease.fetch(PLACE, POST),
    )
    expect(sent.map(({ at }) => at - (sent[0]?.at ?? 0))).toEqual([0, 25, 75, 175, 375])
  })

  it('an answer without a body is repeated like any other', async () => {
    const bare = new Response(null, { status: 503 })
    const { sent } = await fetching(bench, [bare, ok()], async (lease) => {
      expect((await lease.fetch(PLACE, POST)).status).toBe(201)
    })
    expect(sent).toHaveLength(2)
  })

  it.each([502, 503, 504])(
    '%i of a gateway is repeated, and handed over in the end',
    async (status) => {
      const gateway = new Response('<html>', { status })
      const { sent } = await fetching(bench, [gateway, ok(), gateway], async (lease) => {
        expect((await lease.fetch(PLACE, POST)).status).toBe(201)
        const response = await lease.fetch(PLACE, { ...POST, retryForMs: 1_000 })
        expect(response.status).toBe(status)
        expect(await response.text()).toBe('<html>')
      })
      expect(sent.length).toBeGreaterThan(4)
    },
  )
})

describe('a lease that is lost', () => {
  it('sends nothing', async () => {
    const { sent } = await fetching(bench, [ok()], async (lease) => {
      vi.setSystemTime(Date.now() + DEADLINE)
      await expect(lease.fetch(PLACE, POST)).rejects.toMatchObject({ reason: 'expired' })
    })
    expect(sent).toEqual([])
  })

  it('sends nothing where it was lost while the body was read', async () => {
    const { sent } = await fetching(bench, [ok()], async (lease) => {
      const slow = new ReadableStream({
        async pull(controller) {
          vi.setSystemTime(Date.now() + DEADLINE)
          controller.close()
        },
      })
      const init = { ...POST, body: slow, duplex: 'half' } as never
      await expect(lease.fetch(PLACE, init)).rejects.toBeInstanceOf(LeaseLostError)
    })
    expect(sent).toEqual([])
  })

  it('aborts what is under way, and what waits for its next try', async () => {
    const hanging: Answer = ({ init }) =>
      new Promise((_, reject) => {
        init.signal?.addEventListener('abort', () => reject(init.signal?.reason))
      })
    for (const answer of [hanging, refusal(409, 'in_flight', {}, { 'Retry-After': '60' })]) {
      bench.store.rows.clear()
      bench.store.script.renew = () => ({ status: 'lost', reason: 'superseded' })
      await fetching(bench, [answer], async (lease) => {
        const error = lease.fetch(PLACE, { ...POST, retryForMs: 90_000 })
        await expect(error).rejects.toMatchObject({ reason: 'superseded' })
      })
    }
  })

  it('a signal of the caller ends the call and nothing else', async () => {
    const hanging: Answer = ({ init }) =>
      new Promise((_, reject) => {
        init.signal?.addEventListener('abort', () => reject(init.signal?.reason))
      })
    const busy = refusal(409, 'in_flight', {}, { 'Retry-After': '5' })
    for (const answer of [hanging, busy]) {
      bench.store.rows.clear()
      const { sent } = await fetching(bench, [answer], async (lease) => {
        const reason = new Error('enough')
        const mine = new AbortController()
        const inInit = lease.fetch(PLACE, { ...POST, signal: mine.signal })
        const request = new Request(PLACE, { method: 'POST', signal: mine.signal })
        const inRequest = lease.fetch(request, { operationId: 'op-2' })
        setTimeout(() => mine.abort(reason), 1_000)
        await expect(inInit).rejects.toBe(reason)
        await expect(inRequest).rejects.toBe(reason)
        lease.assertHeld()
      })
      expect(sent).toHaveLength(2)
    }
  })

  it('tells the reason of the signal, whatever the sending makes of it', async () => {
    const late: Answer = ({ init }) =>
      new Promise((_, reject) => {
        const error = new DOMException('This operation was aborted', 'AbortError')
        init.signal?.addEventListener('abort', () => reject(error))
      })
    await fetching(bench, [late], async (lease) => {
      const reason = new Error('enough')
      const mine = new AbortController()
      const call = lease.fetch(PLACE, { ...POST, signal: mine.signal, retryForMs: 0 })
      setTimeout(() => mine.abort(reason), 1_000)
      await expect(call).rejects.toBe(reason)
    })
  })

  it('a stop of the run leaves writes that are under way alone', async () => {
    const stop = new AbortController()
    const slow: Answer = async () => {
      await bench.store.wait(2_000)
      return ok()
    }
    let status: number | undefined
    const { outcome } = await fetching(
      bench,
      [slow],
      async (lease) => {
        const response = lease.fetch(PLACE, POST)
        stop.abort()
        status = (await response).status
      },
      { signal: stop.signal },
    )
    expect(status).toBe(201)
    expect(outcome).toEqual({ status: 'stopped' })
  })

  it('is what a hanging destination ends with', async () => {
    bench.store.script.renew = () => never()
    const hanging: Answer = ({ init }) =>
      new Promise((_, reject) => {
        init.signal?.addEventListener('abort', () => reject(init.signal?.reason))
      })
    const { outcome } = await fetching(bench, [hanging], (lease) => lease.fetch(PLACE, POST))
    expect(outcome).toEqual({ status: 'lost', reason: 'unreachable' })
  })

  const silent = (sent: Sent) =>
    new Promise<Response>((_, reject) => {
      const { signal } = sent.init
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
    })

  it('a destination that takes the request and never answers is asked again', async () => {
    const { sent, outcome } = await fetching(bench, [silent, ok()], async (lease) => {
      const response = await lease.fetch(PLACE, { ...POST, timeoutMs: 1_000 })
      return response.status
    })
    expect(outcome).toMatchObject({ value: 201 })
    expect(sent).toHaveLength(2)
    expect((sent[1]?.at ?? 0) - (sent[0]?.at ?? 0)).toBeGreaterThanOrEqual(1_000)
  })

  it('a destination that never answers is given up', async () => {
    const limits = { timeoutMs: 1_000, retryForMs: 0 }
    const never = fetching(bench, [silent], (lease) => lease.fetch(PLACE, { ...POST, ...limits }))
    const error = { name: 'TimeoutError', message: 'no answer in 1000 ms' }
    await expect(never).rejects.toMatchObject(error)
  })

  it('R41: a time-out of a month is not one of a millisecond', async () => {
    const slow: Answer = async () => {
      await bench.store.wait(100)
      return ok()
    }
    const { sent, outcome } = await fetching(bench, [slow], async (lease) => {
      const init = { ...POST, timeoutMs: 30 * 24 * 60 * 60_000 }
      return (await lease.fetch(PLACE, init)).status
    })
    expect(outcome).toMatchObject({ value: 201 })
    expect(sent).toHaveLength(1)
  })

  it.each([0, -1, 1.5, Number.NaN, '1s'])('a time-out of %s is misuse', async (timeoutMs) => {
    const init = { ...POST, timeoutMs } as never
    const run = fetching(bench, [ok()], (lease) => lease.fetch(PLACE, init))
    await expect(run).rejects.toThrow('timeoutMs')
  })
})
