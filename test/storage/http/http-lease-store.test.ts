import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { StoreUnavailableError, WriteRefusedError } from 'writefence'
import { HttpLeaseStore, type HttpServiceOptions, httpDestination } from 'writefence/http'
import { parseFencingToken } from '../../../src/wire/headers.ts'

const BASE = 'https://store.example/api'
const lease = { jobId: 'j', owner: 'w', generation: 7, leaseId: 'l', leaseUntil: 99, ttlMs: 1_000 }
const request = { jobId: 'j', owner: 'w', ttlMs: 1_000, leaseId: 'l' }
const token = { jobId: 'a/b', generation: 7, leaseId: 'l' }

interface Sent {
  readonly url: string
  readonly init: RequestInit
}
type Answer = Response | Error | ((sent: Sent) => Promise<Response>)

function json(status: number, body: unknown, headers: Record<string, string> = {}): Response {
  const type = { 'content-type': 'application/json' }
  return new Response(JSON.stringify(body), { status, headers: { ...type, ...headers } })
}

function problem(status: number, code: string, more: object = {}, headers = {}): Response {
  const type = { 'content-type': 'application/problem+json' }
  return json(status, { code, retryable: false, ...more }, { ...type, ...headers })
}

function service(answer: Answer, options: HttpServiceOptions = {}) {
  const sent: Sent[] = []
  const fetch = async (url: string, init: RequestInit) => {
    sent.push({ url, init })
    if (answer instanceof Error) throw answer
    return typeof answer === 'function' ? answer({ url, init }) : answer.clone()
  }
  return { sent, options: { fetch, ...options } }
}

function storeThat(answer: Answer, options: HttpServiceOptions = {}) {
  const { sent, options: all } = service(answer, options)
  return { sent, store: new HttpLeaseStore(BASE, all) }
}

/** Answers nothing, and ends as fetch does when it is aborted. */
const hanging: Answer = ({ init }) =>
  new Promise((_, reject) => {
    init.signal?.addEventListener('abort', () => reject(init.signal?.reason))
  })

describe('HttpLeaseStore', () => {
  it('sends one request, as JSON, with the headers that it was given', async () => {
    const headers = { authorization: 'Bearer t' }
    const { sent, store } = storeThat(json(201, { status: 'claimed', lease }), { headers })
    expect(await store.claim(request)).toEqual({ status: 'claimed', lease })
    expect(sent).toHaveLength(1)
    const [{ url, init }] = sent as [Sent]
    expect(url).toBe(`${BASE}/leases/j/claim`)
    expect(init).toMatchObject({ method: 'POST', redirect: 'manual' })
    expect(JSON.parse(String(init.body))).toEqual({ owner: 'w', ttlMs: 1_000, leaseId: 'l' })
    const got = new Headers(init.headers)
    expect(got.get('authorization')).toBe('Bearer t')
    expect(got.get('content-type')).toBe('application/json')
  })

  it('a claim without a leaseId is sent with one, so that it can be repeated', async () => {
    const echo: Answer = async ({ init }) => {
      const { leaseId } = JSON.parse(String(init.body)) as { leaseId: string }
      return json(201, { status: 'claimed', lease: { ...lease, leaseId } })
    }
    const { store } = storeThat(echo)
    const { leaseId: _, ...anonymous } = request
    const answers = await Promise.all([store.claim(anonymous), store.claim(anonymous)])
    const ids = answers.map((answer) => answer.status === 'claimed' && answer.lease.leaseId)
    expect(new Set(ids).size).toBe(2)
    expect(ids[0]).toMatch(/^[0-9a-f]{32}$/)
  })

  it.each([
    [`${BASE}/`, BASE],
    [`${BASE}//`, BASE],
    ['http://store.example', 'http://store.example'],
  ])('takes the base URL with and without a slash: %s', async (base, start) => {
    const { sent, options } = service(json(200, { leases: [] }))
    await new HttpLeaseStore(base, options).list()
    await new HttpLeaseStore(new URL(base), options).list({ status: 'leased', limit: 5 })
    expect(sent.map(({ url }) => url)).toEqual([
      `${start}/leases?limit=100`,
      `${start}/leases?status=leased&limit=5`,
    ])
  })

  it.each([
    ['baseUrl', 'store.example', undefined],
    ['baseUrl', '/api', undefined],
    ['baseUrl', 'ftp://store.example', undefined],
    ['baseUrl', `${BASE}?tenant=1`, undefined],
    ['baseUrl', `${BASE}#x`, undefined],
    ['baseUrl', undefined, undefined],
    ['timeoutMs', BASE, { timeoutMs: 0 }],
    ['timeoutMs', BASE, { timeoutMs: null }],
    ['timeoutMs', BASE, { timeoutMs: '5s' }],
    ['fetch', BASE, { fetch: 'fetch' }],
  ])('refuses a malformed %s at once (%s)', (name, base, options) => {
    expect(() => new HttpLeaseStore(base as never, options as never)).toThrow(
      new RegExp(`^${name} `),
    )
    expect(() => httpDestination(base as never, options as never)).toThrow(new RegExp(`^${name} `))
  })

  it('R46: refuses the ids that no URL can carry, and sends nothing', async () => {
    const { sent, store } = storeThat(json(200, {}))
    for (const jobId of ['.', '..']) {
      await expect(store.claim({ ...request, jobId })).rejects.toThrow(RangeError)
      await expect(store.get(jobId)).rejects.toThrow(/^jobId/)
    }
    expect(sent).toEqual([])
  })

  it.each<[string, Answer]>([
    ['a network that fails', new TypeError('fetch failed')],
    ['an error without a body', new Response(null, { status: 500 })],
    ['a gateway', new Response('<html>', { status: 502 })],
    ['an error in the words of the store', json(500, { status: 'claimed', lease })],
    ['another server', new Response('Cannot POST /leases/j/claim', { status: 404 })],
    ['JSON of something else', json(200, { ok: true })],
    ['a redirect', new Response(null, { status: 307, headers: { location: '/login' } })],
    ['an empty success', new Response(null, { status: 204 })],
    ['another lease', json(201, { status: 'claimed', lease: { ...lease, leaseId: 'x' } })],
    ['another job', json(201, { status: 'claimed', lease: { ...lease, jobId: 'k' } })],
    ['another owner', json(201, { status: 'claimed', lease: { ...lease, owner: 'x' } })],
    ['a store that is away', problem(503, 'store_unavailable', { retryable: true })],
    ['a body that breaks off', async () => broken()],
  ])('takes nothing for a lease but the answer of its service: %s', async (_, answer) => {
    const { sent, store } = storeThat(answer)
    const error = await store.claim(request).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(StoreUnavailableError)
    expect(error).toMatchObject({ retryable: true })
    expect(sent).toHaveLength(1)
  })

  it.each([404, 405])('says where it asked, and what may be wrong there (%i)', async (status) => {
    const cannot = () => new Response('Cannot POST', { status })
    const { options } = service(async () => cannot())
    const base = 'https://user:secret@store.example/api/leases'
    const claims = new HttpLeaseStore(base, options).claim(request)
    const none = `an answer that is none of the service's (status ${status})`
    await expect(claims).rejects.toThrow(
      `POST https://store.example/api/leases/leases/j/claim: ${none}:` +
        ' are leaseRoutes mounted there, and is the base URL without /leases?',
    )
    const lists = new HttpLeaseStore(BASE, options).list({ owner: 'secret' })
    await expect(lists).rejects.toThrow(`GET ${BASE}/leases: ${none}: are leaseRoutes`)
    const advances = httpDestination(BASE, options).advance(token)
    await expect(advances).rejects.toThrow(
      `POST ${BASE}/fences/a%2Fb/advance: ${none}:` +
        ' are fenceRoutes mounted there, and is the base URL without /fences?',
    )
  })

  it('says where it asked without a guess, and without credentials', async () => {
    const { store } = storeThat(json(200, { ok: true }))
    const error = await store.claim(request).catch((reason: unknown) => reason)
    expect(error).toMatchObject({
      message: `POST ${BASE}/leases/j/claim: an answer that is none of the service's (status 200)`,
    })
    const { options } = service(new TypeError('fetch failed'))
    const away = new HttpLeaseStore('https://user:secret@store.example/api', options).get('j')
    await expect(away).rejects.toMatchObject({
      message: 'cannot reach https://store.example/api',
    })
  })

  it('a renewal is of the lease that was asked for', async () => {
    for (const other of [{ generation: 8 }, { leaseId: 'x' }, { jobId: 'k' }, { ttlMs: 5 }]) {
      const answer = { status: 'renewed', lapsed: false, lease: { ...lease, ...other } }
      const { store } = storeThat(json(200, answer))
      await expect(store.renew(lease)).rejects.toBeInstanceOf(StoreUnavailableError)
    }
  })

  it('a refusal to answer is not repeated: no repetition helps', async () => {
    for (const code of ['forbidden', 'request_malformed']) {
      const { store } = storeThat(problem(403, code, { detail: 'no' }))
      const error = await store.complete(lease).catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(StoreUnavailableError)
      expect(error).toMatchObject({ retryable: false, message: `the service answered ${code}: no` })
    }
  })
})

describe('a service that does not answer', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => {
    expect(vi.getTimerCount()).toBe(0)
    vi.useRealTimers()
  })

  it('is given up after the time-out, once', async () => {
    const { sent, store } = storeThat(hanging, { timeoutMs: 3_000 })
    const error = store.claim(request).catch((reason: unknown) => reason)
    await vi.advanceTimersByTimeAsync(2_999)
    expect(sent[0]?.init.signal?.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(await error).toBeInstanceOf(StoreUnavailableError)
    expect(await error).toMatchObject({ cause: { message: 'no answer within 3000 ms' } })
    expect(sent).toHaveLength(1)
  })

  it('is given up while its body is read, too', async () => {
    const endless: Answer = async ({ init }) => {
      const body = new ReadableStream({
        start(controller) {
          init.signal?.addEventListener('abort', () => controller.error(init.signal?.reason))
        },
      })
      return new Response(body, { status: 200 })
    }
    const { store } = storeThat(endless, { timeoutMs: 3_000 })
    const error = store.get('j').catch((reason: unknown) => reason)
    await vi.advanceTimersByTimeAsync(3_000)
    expect(await error).toBeInstanceOf(StoreUnavailableError)
  })

  it('is given up when the store is closed, which refuses what comes', async () => {
    const { sent, store } = storeThat(hanging)
    const error = store.claim(request).catch((reason: unknown) => reason)
    await store.close()
    expect(await error).toMatchObject({ cause: { message: 'the store was closed' } })
    await expect(store.get('j')).rejects.toThrow('the store is closed')
    expect(sent).toHaveLength(1)
  })

  it('an answer in time leaves no timer and no listener behind', async () => {
    const { sent, store } = storeThat(json(404, { status: 'unknown_job' }))
    expect(await store.get('j')).toBeUndefined()
    expect(getEventListeners(sent[0]?.init.signal as AbortSignal, 'abort')).toEqual([])
  })
})

describe('httpDestination', () => {
  const state = { highestGeneration: 7, sealed: true, older: { inFlight: 1, overdue: 2 } }

  it('sends the token in its header, and reads the state of the fence', async () => {
    const { sent, options } = service(json(200, { ...state, jobId: 'a/b', unknown: 0 }))
    const destination = httpDestination(BASE, { ...options, headers: { 'x-tenant': 't' } })
    expect(await destination.advance({ ...token, owner: 'w' } as typeof token)).toEqual(state)
    const [{ url, init }] = sent as [Sent]
    expect([url, init.method, init.body]).toEqual([
      `${BASE}/fences/a%2Fb/advance`,
      'POST',
      undefined,
    ])
    const headers = new Headers(init.headers)
    expect(parseFencingToken(headers.get('fencing-token') ?? '')).toEqual(token)
    expect(headers.get('x-tenant')).toBe('t')
  })

  it.each([
    [412, 'stale', false],
    [409, 'conflict', false],
    [403, 'forbidden', false],
    [409, 'in_flight', true],
  ])('throws the refusal that it was told: %i %s', async (status, code, retryable) => {
    const told = problem(status, code, { highestGeneration: 9 }, { 'retry-after': '2' })
    const destination = httpDestination(BASE, service(told).options)
    const error = await destination.advance(token).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(WriteRefusedError)
    const known = { jobId: 'a/b', generation: 7, highestGeneration: 9, retryAfterMs: 2_000 }
    expect(error).toMatchObject({ code, retryable, ...known })
  })

  it.each<[string, Answer]>([
    ['a network that fails', new TypeError('fetch failed')],
    ['a gateway', new Response('<html>', { status: 504 })],
    ['another server', json(404, { error: 'not found' })],
    ['an unknown job', json(404, { status: 'unknown_job' })],
    ['half a state', json(200, { ...state, older: {} })],
    ['a state under another status', json(201, state)],
    ['a store that is away', problem(503, 'store_unavailable')],
  ])('is not taken over by %s', async (_, answer) => {
    const destination = httpDestination(BASE, service(answer).options)
    await expect(destination.advance(token)).rejects.toBeInstanceOf(StoreUnavailableError)
  })
})

function broken(): Response {
  const body = new ReadableStream({
    start(controller) {
      controller.error(new Error('ECONNRESET'))
    },
  })
  return new Response(body, { status: 201 })
}
