import { describe, expect, it } from 'vitest'
import { RequestRefusedError } from '../../src/errors.ts'
import { readFenceAnswer, readFenceCall, spellFenceCall } from '../../src/wire/fence-messages.ts'
import {
  type LeaseCall,
  leaseAnswers,
  readLeaseCall,
  spellLeaseAnswer,
  spellLeaseCall,
} from '../../src/wire/lease-messages.ts'

const key = { owner: 'w-1', generation: 7, leaseId: 'f00d' }
const overTheWire = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
const defined = (value: object): unknown => overTheWire(value)

function post(target: string, body?: unknown) {
  return () => readLeaseCall({ method: 'POST', target, body })
}
function get(target: string) {
  return () => readLeaseCall({ method: 'GET', target })
}

const oddIds = [
  'a/b',
  'a%2Fb',
  'claim',
  '订单-1',
  '🚚',
  ' trailing ',
  '__proto__',
  'constructor',
  'a?b#c&d=e+f',
  '...',
  '%2e',
  '𐀀'.repeat(255),
]

describe('a call of the lease service', () => {
  const calls: LeaseCall[] = oddIds.flatMap((jobId): LeaseCall[] => [
    { verb: 'claim', jobId, owner: jobId, ttlMs: 30_000, leaseId: jobId },
    { verb: 'claim', jobId, owner: 'w', ttlMs: 1 },
    { verb: 'renew', jobId, ...key, ttlMs: 5 },
    { verb: 'complete', jobId, ...key },
    { verb: 'release', jobId, ...key },
    { verb: 'get', jobId },
    { verb: 'raise', jobId, atLeast: 999_999_999_999_998 },
    { verb: 'force-release', jobId },
    { verb: 'reopen', jobId },
    { verb: 'list', owner: jobId, after: jobId, status: 'leased', expired: false, limit: 1000 },
  ])
  calls.push({ verb: 'list', limit: 100 }, { verb: 'list', expired: true, limit: 1 })
  calls.push({ verb: 'prune', olderThanMs: 0, limit: 10_000 })

  it('R46/R65/R68: is read as it was meant, whatever the ids are', () => {
    for (const call of calls) {
      const { method, target, body } = spellLeaseCall(call)
      const url = new URL(`https://store.example/base${target}`)
      expect(url.pathname + url.search).toBe(`/base${target}`)
      const read = readLeaseCall({ method, target, body: body && overTheWire(body) })
      expect(read && defined(read)).toEqual(defined(call))
    }
  })

  it('has the limits of the port where it names none', () => {
    expect(get('/leases')()).toMatchObject({ verb: 'list', limit: 100 })
    expect(post('/lease-maintenance/prune', { olderThanMs: 1 })()).toMatchObject({ limit: 1000 })
  })

  it('is refused at the client where a URL would drop the job id', () => {
    for (const jobId of ['.', '..']) {
      expect(() => spellLeaseCall({ verb: 'get', jobId })).toThrow(/jobId must not be/)
      expect(() => spellFenceCall({ verb: 'advance', jobId })).toThrow(RangeError)
    }
  })

  it('is none where method or path is another', () => {
    for (const none of [
      post('/leases'),
      post('/leases/j'),
      post('/leases/j/steal', key),
      post('/leases/j/get', key),
      post('/leases/j/complete/x', key),
      post('/leasesx/j/claim', key),
      post('/jobs/j/claim', key),
      get('/leases/j/claim'),
      get('/lease-maintenance/prune'),
      get('/other/%E0%A4%A'),
      () => readLeaseCall({ method: 'DELETE', target: '/leases/j' }),
      () => readLeaseCall({ method: 'PUT', target: '/leases/j/claim', body: key }),
    ]) {
      expect(none()).toBeUndefined()
    }
  })

  const claim = { owner: 'w', ttlMs: 1000 }
  const malformed: [string, () => unknown][] = [
    ['no body', post('/leases/j/claim')],
    ['a body that is a list', post('/leases/j/claim', [])],
    ['a body that is a text', post('/leases/j/claim', 'claim')],
    ['null', post('/leases/j/claim', null)],
    ['no owner', post('/leases/j/claim', { ttlMs: 1 })],
    ['an empty owner', post('/leases/j/claim', { ...claim, owner: '' })],
    ['an owner that is a number', post('/leases/j/claim', { ...claim, owner: 1 })],
    ['no ttl', post('/leases/j/claim', { owner: 'w' })],
    ...[0, -1, 1.5, '30s', '30', null, 1e12].map((ttlMs): [string, () => unknown] => [
      `ttlMs ${JSON.stringify(ttlMs)}`,
      post('/leases/j/claim', { ...claim, ttlMs }),
    ]),
    ['leaseId null', post('/leases/j/claim', { ...claim, leaseId: null })],
    ['leaseId with a control character', post('/leases/j/claim', { ...claim, leaseId: 'a\n' })],
    ['another job in the body', post('/leases/j/claim', { ...claim, jobId: 'k' })],
    ['another job in the key', post('/leases/j/complete', { ...key, jobId: 'J' })],
    ['an empty job id', post('/leases//claim', claim)],
    ['R65: broken encoding', post('/leases/%E0%A4%A/claim', claim)],
    ['R67: a NUL', post('/leases/a%00b/claim', claim)],
    ['R67: 10 KB of id', post(`/leases/${'x'.repeat(10_000)}/claim`, claim)],
    ['R22: generation 0', post('/leases/j/renew', { ...key, ttlMs: 1, generation: 0 })],
    ['renew without ttl', post('/leases/j/renew', key)],
    ['generation as text', post('/leases/j/complete', { ...key, generation: '7' })],
    ['R58: generation too high', post('/leases/j/release', { ...key, generation: 1e15 })],
    ['no leaseId', post('/leases/j/release', { ...key, leaseId: undefined })],
    ['no key owner', post('/leases/j/release', { ...key, owner: undefined })],
    ['raise without a number', post('/leases/j/raise', {})],
    ['raise to the highest generation', post('/leases/j/raise', { atLeast: 999_999_999_999_999 })],
    ['raise to 0', post('/leases/j/raise', { atLeast: 0 })],
    ['force-release of nothing', post('/leases//force-release')],
    ['prune without age', post('/lease-maintenance/prune', {})],
    ['prune of a negative age', post('/lease-maintenance/prune', { olderThanMs: -1 })],
    ['prune without limit', post('/lease-maintenance/prune', { olderThanMs: 1, limit: 10_001 })],
    ['get of nothing', get('/leases/')],
    ['a repeated parameter', get('/leases?limit=1&limit=2')],
    ['a parameter named __proto__ twice', get('/leases?__proto__=1&__proto__=2')],
    ['status of another kind', get('/leases?status=gone')],
    ['expired=1', get('/leases?expired=1')],
    ['an empty after', get('/leases?after=')],
    ['broken encoding in the query', get('/leases?after=%E0%A4%A')],
    ...['0', '1001', '1e2', '', '+5', ' 5', '-1', '05000', '٥'].map(
      (limit): [string, () => unknown] => [
        `limit=${limit}`,
        get(`/leases?limit=${encodeURIComponent(limit)}`),
      ],
    ),
  ]

  it.each(malformed)('is refused as request_malformed: %s', (_, read) => {
    expect(read).toThrow(RequestRefusedError)
    expect(read).toThrow(expect.objectContaining({ code: 'request_malformed' }))
  })
})

describe('an answer of the lease service', () => {
  const lease = { jobId: 'j', ...key, leaseUntil: 1_700_000_000_123, ttlMs: 30_000 }
  const held = {
    status: 'held',
    owner: 'w-2',
    generation: 7,
    leaseUntil: 1_700_000_000_123,
    retryAfterMs: 1500,
  } as const
  const record = { jobId: 'j', generation: 7, status: 'completed', owner: 'w-1' } as const
  const lost = { status: 'lost', reason: 'superseded' } as const

  it('has the status of its kind, and is read as it was meant', () => {
    const claimed = { status: 'claimed', lease } as const
    expect(spellLeaseAnswer('claim', claimed)).toEqual({ status: 201, body: claimed })
    expect(leaseAnswers.claim(overTheWire(claimed))).toEqual(claimed)

    expect(spellLeaseAnswer('claim', held)).toEqual({
      status: 409,
      body: held,
      retryAfterMs: 1500,
    })
    expect(leaseAnswers.claim(overTheWire(held))).toEqual(held)

    const over = { status: 'completed', generation: 7 } as const
    expect(spellLeaseAnswer('claim', over).status).toBe(409)
    expect(leaseAnswers.claim(overTheWire(over))).toEqual(over)

    const renewed = { status: 'renewed', lease, lapsed: true } as const
    expect(spellLeaseAnswer('renew', renewed).status).toBe(200)
    expect(leaseAnswers.renew(overTheWire(renewed))).toEqual(renewed)

    const completed = { status: 'completed', lapsed: false } as const
    expect(spellLeaseAnswer('complete', completed).status).toBe(200)
    expect(leaseAnswers.complete(overTheWire(completed))).toEqual(completed)

    expect(spellLeaseAnswer('release', { status: 'released' }).status).toBe(200)
    expect(leaseAnswers.release({ status: 'released' })).toEqual({ status: 'released' })

    for (const verb of ['renew', 'complete', 'release'] as const) {
      expect(spellLeaseAnswer(verb, lost)).toEqual({ status: 412, body: lost })
      expect(leaseAnswers[verb](overTheWire(lost))).toEqual(lost)
    }

    expect(spellLeaseAnswer('get', record)).toEqual({ status: 200, body: record })
    expect(leaseAnswers.record(overTheWire(record))).toEqual(record)
    expect(leaseAnswers.maybeRecord(overTheWire(record))).toEqual(record)

    const listed = spellLeaseAnswer('list', [record])
    expect(listed).toEqual({ status: 200, body: { leases: [record] } })
    expect(leaseAnswers.list(overTheWire(listed.body))).toEqual([record])

    expect(spellLeaseAnswer('prune', { pruned: 3 })).toEqual({ status: 200, body: { pruned: 3 } })
    expect(leaseAnswers.prune({ pruned: 3 })).toEqual({ pruned: 3 })
  })

  it('tells an unknown job from a route that is not there', () => {
    const unknown = spellLeaseAnswer('get', undefined)
    expect(unknown).toEqual({ status: 404, body: { status: 'unknown_job' } })
    expect(leaseAnswers.maybeRecord(unknown.body)).toBeUndefined()
    for (const other of [{}, { status: 404 }, 'Cannot GET /leases/j', null, { error: 'x' }]) {
      expect(() => leaseAnswers.maybeRecord(other)).toThrow()
    }
  })

  it('is none where a member is missing, of another type or out of range', () => {
    const bad: [(body: unknown) => unknown, unknown][] = [
      [leaseAnswers.claim, undefined],
      [leaseAnswers.claim, { status: 'renewed', lease }],
      [leaseAnswers.claim, { status: 'claimed' }],
      [leaseAnswers.claim, { status: 'claimed', lease: { ...lease, generation: 7.5 } }],
      [leaseAnswers.claim, { status: 'claimed', lease: { ...lease, leaseId: undefined } }],
      [leaseAnswers.claim, { status: 'claimed', lease: { ...lease, leaseUntil: 'soon' } }],
      [leaseAnswers.claim, { status: 'claimed', lease: { ...lease, ttlMs: 0 } }],
      [leaseAnswers.claim, { status: 'claimed', lease: { ...lease, jobId: '' } }],
      [leaseAnswers.claim, { ...held, retryAfterMs: -1 }],
      [leaseAnswers.claim, { ...held, generation: '7' }],
      [leaseAnswers.claim, { ...held, owner: undefined }],
      [leaseAnswers.claim, { status: 'completed' }],
      [leaseAnswers.renew, { status: 'renewed', lease }],
      [leaseAnswers.renew, { status: 'lost' }],
      [leaseAnswers.renew, { status: 'lost', reason: 'fenced' }],
      [leaseAnswers.renew, { status: 'claimed', lease }],
      [leaseAnswers.complete, { status: 'completed' }],
      [leaseAnswers.complete, { status: 'completed', lapsed: 'no' }],
      [leaseAnswers.complete, { status: 'released' }],
      [leaseAnswers.release, { status: 'completed', lapsed: false }],
      [leaseAnswers.record, { ...record, status: 'running' }],
      [leaseAnswers.record, { ...record, expired: 'no' }],
      [leaseAnswers.record, { ...record, leaseUntil: 1.5 }],
      [leaseAnswers.list, []],
      [leaseAnswers.list, { leases: [{}] }],
      [leaseAnswers.prune, { pruned: -1 }],
    ]
    for (const [read, body] of bad) expect(() => read(body), JSON.stringify(body)).toThrow()
  })
})

describe('a call of the fence service', () => {
  it('R46/R65: is read as it was meant, whatever the job id is', () => {
    for (const jobId of oddIds) {
      for (const verb of ['advance', 'seal', 'inspect'] as const) {
        expect(readFenceCall(spellFenceCall({ verb, jobId }))).toEqual({ verb, jobId })
      }
    }
  })

  it('is none where method or path is another, and malformed where the id is', () => {
    const read = (method: string, target: string) => readFenceCall({ method, target })
    expect(read('GET', '/fences/j/advance')).toBeUndefined()
    expect(read('POST', '/fences/j')).toBeUndefined()
    expect(read('POST', '/fences/j/inspect')).toBeUndefined()
    expect(read('POST', '/fences/j/seal/x')).toBeUndefined()
    expect(read('POST', '/fence/j/seal')).toBeUndefined()
    for (const target of ['/fences/%E0%A4%A/advance', '/fences//advance', '/fences/a%00/seal']) {
      expect(() => read('POST', target)).toThrow(
        expect.objectContaining({ code: 'request_malformed' }),
      )
    }
    expect(() => read('GET', '/fences/')).toThrow(RequestRefusedError)
  })

  it('has an answer that is read only if all of it is there', () => {
    const state = { highestGeneration: 7, sealed: false, older: { inFlight: 1, overdue: 0 } }
    expect(readFenceAnswer({ ...state, jobId: 'j', unknown: 3 })).toEqual(state)
    for (const bad of [
      {},
      { ...state, highestGeneration: 0 },
      { ...state, sealed: 0 },
      { ...state, older: undefined },
      { ...state, older: { inFlight: 1 } },
      { ...state, older: { inFlight: 0.5, overdue: 0 } },
      { ...state, older: { inFlight: 0, overdue: -1 } },
      { ...state, older: { inFlight: '0', overdue: 0 } },
    ]) {
      expect(() => readFenceAnswer(bad), JSON.stringify(bad)).toThrow()
    }
  })
})
