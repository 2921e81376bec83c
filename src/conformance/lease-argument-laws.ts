/** Which identifiers and arguments a lease store takes, and what it refuses (rule 5). */

import assert from 'node:assert/strict'
import type { LeaseStore } from '../lease/lease-store.ts'
import { MAX_GENERATION, MAX_ID_LENGTH } from '../token.ts'
import { claimed, type LeaseStoreLaw, law, TTL, wants } from './lease-store-context.ts'

/** Each is another id than every other one, on every engine and collation. */
const ids = [
  'job',
  'Job',
  'job ',
  ' job',
  'jöb',
  'jo\u0308b',
  'ｊob',
  'job-1',
  'job-10',
  'job_1',
  'job%',
  'a',
  'A',
  'ß',
  'ss',
  'SS',
  'i',
  'İ',
  'ı',
  '订单-1',
  '🚚',
  '🚚🏻',
  '__proto__',
  'constructor',
  'toString',
  'null',
  'undefined',
  '0',
  '00',
  'a/b',
  'a%2Fb',
  'a:b',
  '{a}b',
  '*',
  "'; DROP TABLE writefence_lease; --",
  'back\\slash',
  '"quoted"',
  '\u200b',
  '\ufeff',
  'x'.repeat(MAX_ID_LENGTH),
  '\u{10000}'.repeat(MAX_ID_LENGTH),
  '\u{1f69a}'.repeat(MAX_ID_LENGTH),
]

const key = { jobId: 'job', owner: 'worker', generation: 1, leaseId: 'l' }

/** What is wrong with an identifier, whichever it is. */
const badIds: readonly unknown[] = [
  undefined,
  null,
  1,
  '',
  'a\u0000b',
  'a\nb',
  '\u0085',
  '\ud83d',
  'x'.repeat(MAX_ID_LENGTH + 1),
  'x'.repeat(10_240),
  ['a'],
  {},
]
const badTtls: readonly unknown[] = [
  undefined,
  null,
  0,
  -1,
  1.5,
  '30s',
  '30000',
  Number.NaN,
  Number.POSITIVE_INFINITY,
  367 * 24 * 60 * 60 * 1000,
  30_000n,
]
const badGenerations: readonly unknown[] = [
  undefined,
  null,
  0,
  -1,
  1.5,
  '1',
  Number.NaN,
  Number.POSITIVE_INFINITY,
  MAX_GENERATION + 1,
  2 ** 53,
  1n,
]

type Call = (store: LeaseStore, value: never) => Promise<unknown>

/** Every argument, by the name that its error must have. */
const calls: readonly [name: string, values: readonly unknown[], calls: readonly Call[]][] = [
  [
    'jobId',
    badIds,
    [
      (store, jobId) => store.claim({ ...wants(), jobId }),
      (store, jobId) => store.renew({ ...key, jobId, ttlMs: TTL }),
      (store, jobId) => store.complete({ ...key, jobId }),
      (store, jobId) => store.release({ ...key, jobId }),
      (store, jobId) => store.get(jobId),
      (store, jobId) => store.raise(jobId, 1),
      (store, jobId) => store.forceRelease(jobId),
      (store, jobId) => store.reopen(jobId),
    ],
  ],
  ['owner', badIds, [(store, owner) => store.claim({ ...wants(), owner })]],
  ['ttlMs', badTtls, [(store, ttlMs) => store.claim({ ...wants(), ttlMs })]],
  ['ttlMs', badTtls, [(store, ttlMs) => store.renew({ ...key, ttlMs })]],
  ['leaseId', badIds.slice(1), [(store, leaseId) => store.claim({ ...wants(), leaseId })]],
  ...(['owner', 'leaseId', 'generation'] as const).map(
    (name): [string, readonly unknown[], readonly Call[]] => [
      name,
      name === 'generation' ? badGenerations : badIds,
      [
        (store, value) => store.renew({ ...key, [name]: value, ttlMs: TTL }),
        (store, value) => store.complete({ ...key, [name]: value }),
        (store, value) => store.release({ ...key, [name]: value }),
      ],
    ],
  ),
  ['atLeast', [...badGenerations, MAX_GENERATION], [(store, value) => store.raise('job', value)]],
  ['status', [null, '', 'gone', 1], [(store, status) => store.list({ status })]],
  ['owner', badIds.slice(1), [(store, owner) => store.list({ owner })]],
  ['after', badIds.slice(1), [(store, after) => store.list({ after })]],
  ['expired', [null, 'true', 1], [(store, expired) => store.list({ expired })]],
  ['limit', [null, 0, 1001, 1.5, '5'], [(store, limit) => store.list({ limit })]],
  [
    'olderThanMs',
    [undefined, null, -1, 0.5, '1'],
    [(store, olderThanMs) => store.prune({ olderThanMs })],
  ],
  ['limit', [null, 0, 10_001, '5'], [(store, limit) => store.prune({ olderThanMs: 0, limit })]],
]

export const argumentLaws: readonly LeaseStoreLaw[] = [
  law('R46/R68: each id is itself: nothing is folded, trimmed or glued', async (bench) => {
    for (const id of ids) await bench.claim({ jobId: id, owner: id, leaseId: id })
    for (const id of ids) {
      const held = await bench.held({ jobId: id })
      assert.equal(held.owner, id)
      assert.equal(held.generation, 1)
      const own = { jobId: id, owner: id, leaseId: id, generation: 1 }
      assert.equal((await bench.store.renew({ ...own, ttlMs: TTL })).status, 'renewed')
      assert.equal((await bench.store.get(id))?.jobId, id)
      assert.equal((await bench.store.list({ owner: id })).length, 1)
    }
    const listed = await bench.store.list({ limit: 1000 })
    assert.deepEqual(listed.map((record) => record.jobId).sort(), [...ids].sort())
    for (const id of ids) {
      const own = { jobId: id, owner: id, leaseId: id, generation: 1 }
      assert.equal((await bench.store.complete(own)).status, 'completed')
    }
  }),

  ...calls.map(([name, values, verbs], i) =>
    law(
      `R67: a malformed ${name} is refused by name, and nothing changes (${i})`,
      async (bench) => {
        claimed(await bench.store.claim({ ...wants(), leaseId: key.leaseId }))
        await bench.unchanged('job', async () => {
          for (const call of verbs) {
            for (const value of values) {
              // The cast is the point: callers in plain JavaScript have no types to stop them.
              await assert.rejects(
                () => call(bench.store, value as never),
                (error: Error) => {
                  assert.ok(
                    error instanceof TypeError || error instanceof RangeError,
                    String(error),
                  )
                  assert.match(error.message, new RegExp(`^${name} `))
                  return true
                },
                `${name} ${String(value)}`,
              )
            }
          }
        })
        assert.equal((await bench.store.list()).length, 1)
      },
    ),
  ),

  law('a request that is no object is refused', async (bench) => {
    for (const value of [undefined, null, 'job', 1]) {
      for (const verb of ['claim', 'renew', 'complete', 'release', 'prune'] as const) {
        await assert.rejects(() => bench.store[verb](value as never), TypeError)
      }
    }
    assert.deepEqual(await bench.store.list(), [])
  }),

  law('what the caller changes after a call does not reach it', async (bench) => {
    const request = { jobId: 'job', owner: 'a', ttlMs: TTL, leaseId: 'l' }
    const answer = bench.store.claim(request)
    Object.assign(request, { jobId: 'other', owner: 'b', ttlMs: 1, leaseId: 'm' })
    const lease = claimed(await answer)
    assert.deepEqual([lease.jobId, lease.owner, lease.ttlMs, lease.leaseId], ['job', 'a', TTL, 'l'])
  }),

  law('a store that is closed refuses every verb, and others go on', async (bench) => {
    const lease = await bench.claim()
    const other = await bench.open()
    await other.close()
    await other.close()
    const refused: readonly (() => Promise<unknown>)[] = [
      () => other.claim(wants({ jobId: 'new' })),
      () => other.renew(lease),
      () => other.complete(lease),
      () => other.release(lease),
      () => other.get('job'),
      () => other.list(),
      () => other.raise('job', 9),
      () => other.forceRelease('job'),
      () => other.reopen('job'),
      () => other.prune({ olderThanMs: 0 }),
    ]
    for (const call of refused) await assert.rejects(call, { code: 'store_unavailable' })
    assert.equal(await bench.store.get('new'), undefined)
    assert.equal((await bench.store.renew(lease)).status, 'renewed')
  }),
]
