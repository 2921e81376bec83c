/** What operators see and change, and that no generation ever comes back (rule 6). */

import assert from 'node:assert/strict'
import type { LeaseQuery } from '../lease/lease-store.ts'
import {
  assertLost,
  type Bench,
  type LeaseStoreLaw,
  law,
  TTL,
  wants,
} from './lease-store-context.ts'

const readLaws: readonly LeaseStoreLaw[] = [
  law('a job is remembered with its state, never with its leaseId', async (bench) => {
    assert.equal(await bench.store.get('job'), undefined)
    const lease = await bench.claim({ owner: 'w', leaseId: 'secret' })
    const leased = { jobId: 'job', generation: 1, status: 'leased', owner: 'w', ttlMs: TTL }
    const { leaseUntil } = lease
    assert.deepEqual(await seen(bench), { ...leased, leaseUntil, expired: false })
    bench.now = leaseUntil - 1
    assert.deepEqual(await seen(bench), { ...leased, leaseUntil, expired: false })
    bench.now = leaseUntil
    assert.deepEqual(await seen(bench), { ...leased, leaseUntil, expired: true })
    await bench.store.release(lease)
    const ended = { jobId: 'job', generation: 1, owner: 'w' }
    assert.deepEqual(await seen(bench), { ...ended, status: 'released' })
    await bench.store.complete(await bench.claim({ owner: 'w', leaseId: 'secret' }))
    assert.deepEqual(await seen(bench), { ...ended, generation: 2, status: 'completed' })
    const all = [await bench.store.get('job'), ...(await bench.store.list())]
    assert.ok(!JSON.stringify(all).includes('secret'))
  }),

  law('jobs are listed in the order of their UTF-8 bytes, in pages', async (bench) => {
    // U+FF5E comes before U+1F600 as UTF-8, and after it as UTF-16.
    const ids = ['A', 'B', '_', 'a', 'a ', 'b', '~', 'ä', '\uff5e', '\u{1f600}']
    for (const jobId of [...ids].reverse()) await bench.claim({ jobId })
    assert.deepEqual(await listed(bench), ids)
    const pages: string[] = []
    for (let after: string | undefined; ; after = pages.at(-1)) {
      const page = await listed(bench, { after, limit: 3 })
      if (page.length === 0) break
      assert.ok(page.length <= 3)
      pages.push(...page)
    }
    assert.deepEqual(pages, ids)
    assert.deepEqual(await listed(bench, { after: 'a!' }), ['b', '~', 'ä', '\uff5e', '\u{1f600}'])
    assert.deepEqual(await listed(bench, { limit: 1 }), ['A'])
  }),

  law('a list has a hundred jobs unless told', async (bench) => {
    const ids = Array.from({ length: 101 }, (_, i) => `job ${String(i).padStart(3, '0')}`)
    await Promise.all(ids.map((jobId) => bench.claim({ jobId })))
    assert.deepEqual(await listed(bench), ids.slice(0, 100))
    assert.deepEqual(await listed(bench, { limit: 1000 }), ids)
  }),

  law('a list holds to each part of its query, and to all of them at once', async (bench) => {
    await bench.claim({ jobId: 'expired', owner: 'a', ttlMs: 1 })
    await bench.claim({ jobId: 'live', owner: 'a' })
    await bench.claim({ jobId: 'other', owner: 'b' })
    await bench.store.release(await bench.claim({ jobId: 'released', owner: 'a' }))
    await bench.store.complete(await bench.claim({ jobId: 'completed', owner: 'a' }))
    bench.now += 1
    assert.deepEqual(await listed(bench, { status: 'leased' }), ['expired', 'live', 'other'])
    assert.deepEqual(await listed(bench, { status: 'released' }), ['released'])
    assert.deepEqual(await listed(bench, { status: 'completed' }), ['completed'])
    assert.deepEqual(await listed(bench, { owner: 'b' }), ['other'])
    assert.deepEqual(await listed(bench, { owner: 'B' }), [])
    assert.deepEqual(await listed(bench, { expired: true }), ['expired'])
    assert.deepEqual(await listed(bench, { expired: false }), ['live', 'other'])
    const mine = { owner: 'a', status: 'leased', expired: false } as const
    assert.deepEqual(await listed(bench, mine), ['live'])
    assert.deepEqual(await listed(bench, { status: 'released', expired: true }), [])
  }),
]

const raiseLaws: readonly LeaseStoreLaw[] = [
  law('a job that is not known can be raised: its first claim is above that', async (bench) => {
    const raised = { jobId: 'job', generation: 7, status: 'released' }
    assert.deepEqual(defined(await bench.store.raise('job', 7)), raised)
    assert.deepEqual(await seen(bench), raised)
    assert.deepEqual(await listed(bench), ['job'])
    assert.equal((await bench.claim()).generation, 8)
  }),

  law('R121: a raise ends a lease below it, for good', async (bench) => {
    const lease = await bench.claim()
    const raised = { jobId: 'job', generation: 7, status: 'released' }
    assert.deepEqual(defined(await bench.store.raise('job', 7)), raised)
    await assertLost(bench.store, lease, 'superseded')
    assert.equal((await bench.claim()).generation, 8)
  }),

  law('a raise to what there is already, or to less, changes nothing', async (bench) => {
    await bench.store.raise('job', 7)
    const lease = await bench.claim()
    await bench.unchanged('job', async () => {
      for (const atLeast of [1, 7, 8]) {
        assert.equal((await bench.store.raise('job', atLeast)).generation, 8)
      }
    })
    assert.equal((await bench.store.renew(lease)).status, 'renewed')
    assert.equal((await bench.store.raise('job', 9)).generation, 9)
    await assertLost(bench.store, lease, 'superseded')
  }),

  law('a raised job that was completed stays completed, and reopens above', async (bench) => {
    await bench.store.complete(await bench.claim())
    assert.equal((await bench.store.raise('job', 7)).status, 'completed')
    const answer = await bench.store.claim(wants())
    assert.deepEqual(answer, { status: 'completed', generation: 7 })
    assert.equal((await bench.store.reopen('job'))?.status, 'released')
    assert.equal((await bench.claim()).generation, 8)
  }),
]

const endLaws: readonly LeaseStoreLaw[] = [
  law('R125: a forced release is final for the holder, and the next is higher', async (bench) => {
    const lease = await bench.claim({ owner: 'w' })
    const released = { jobId: 'job', generation: 1, status: 'released', owner: 'w' }
    assert.deepEqual(defined(await bench.store.forceRelease('job')), released)
    await bench.unchanged('job', () => assertLost(bench.store, lease, 'released'))
    assert.deepEqual(defined(await bench.store.forceRelease('job')), released)
    assert.equal((await bench.claim()).generation, 2)
    await assertLost(bench.store, lease, 'superseded')
  }),

  law('a forced release also ends a lease that has run out', async (bench) => {
    const lease = await bench.claim()
    bench.now += TTL
    await bench.store.forceRelease('job')
    await assertLost(bench.store, lease, 'released')
  }),

  law('there is nothing to release by force where nobody holds a lease', async (bench) => {
    assert.equal(await bench.store.forceRelease('job'), undefined)
    assert.equal(await bench.store.get('job'), undefined)
    const lease = await bench.claim()
    await bench.store.release(lease)
    assert.equal((await bench.store.forceRelease('job'))?.status, 'released')
    // Its own release, answered the same: nobody else has ended it.
    assert.deepEqual(await bench.store.release(lease), { status: 'released' })
    await bench.store.complete(await bench.claim())
    await bench.unchanged('job', async () => {
      assert.equal((await bench.store.forceRelease('job'))?.status, 'completed')
    })
  }),

  law('a reopened job is claimable again, and over for who had completed it', async (bench) => {
    const lease = await bench.claim({ owner: 'w' })
    await bench.store.complete(lease)
    const reopened = { jobId: 'job', generation: 1, status: 'released', owner: 'w' }
    assert.deepEqual(defined(await bench.store.reopen('job')), reopened)
    await bench.unchanged('job', () => assertLost(bench.store, lease, 'released'))
    assert.equal((await bench.claim()).generation, 2)
  }),

  law('only a completed job can be reopened', async (bench) => {
    assert.equal(await bench.store.reopen('job'), undefined)
    assert.equal(await bench.store.get('job'), undefined)
    const lease = await bench.claim()
    await bench.unchanged('job', async () => {
      assert.equal((await bench.store.reopen('job'))?.status, 'leased')
    })
    assert.deepEqual(await bench.store.release(lease), { status: 'released' })
    await bench.unchanged('job', async () => {
      assert.equal((await bench.store.reopen('job'))?.status, 'released')
    })
    assert.deepEqual(await bench.store.release(lease), { status: 'released' })
  }),
]

const pruneLaws: readonly LeaseStoreLaw[] = [
  law('R56: what is pruned leaves its generation, and its completion, behind', async (bench) => {
    const done = await bench.claim({ jobId: 'done' })
    await bench.store.complete(done)
    const free = await bench.claim({ jobId: 'free' })
    await bench.store.release(free)
    assert.deepEqual(await bench.store.prune({ olderThanMs: 0 }), { pruned: 2 })
    assert.deepEqual(await bench.store.prune({ olderThanMs: 0 }), { pruned: 0 })
    assert.deepEqual(await listed(bench), [])
    const completed = { jobId: 'done', generation: 1, status: 'completed' }
    assert.deepEqual(defined(await bench.store.get('done')), completed)
    const released = { jobId: 'free', generation: 1, status: 'released' }
    assert.deepEqual(defined(await bench.store.get('free')), released)

    await assertLost(bench.store, done, 'completed')
    await assertLost(bench.store, free, 'released')
    const answer = await bench.store.claim(wants({ jobId: 'done' }))
    assert.deepEqual(answer, { status: 'completed', generation: 1 })
    assert.equal((await bench.claim({ jobId: 'free' })).generation, 2)
    assert.deepEqual(await listed(bench), ['free'])
    await bench.store.reopen('done')
    assert.equal((await bench.claim({ jobId: 'done' })).generation, 2)
  }),

  law('only what ended long enough ago is pruned, to the millisecond', async (bench) => {
    await bench.store.release(await bench.claim({ jobId: 'early' }))
    bench.now += 1
    await bench.store.complete(await bench.claim({ jobId: 'late' }))
    bench.now += 1_000
    assert.deepEqual(await bench.store.prune({ olderThanMs: 1_001 }), { pruned: 1 })
    assert.deepEqual(await listed(bench), ['late'])
    assert.deepEqual(await bench.store.prune({ olderThanMs: 1_001 }), { pruned: 0 })
  }),

  law('a lease is never pruned, though it ran out long ago', async (bench) => {
    const lease = await bench.claim()
    bench.now += 100 * TTL
    assert.deepEqual(await bench.store.prune({ olderThanMs: 0 }), { pruned: 0 })
    assert.equal((await bench.store.renew(lease)).status, 'renewed')
  }),

  law('R127: pruning goes by batches, the oldest first', async (bench) => {
    for (const jobId of ['c', 'a', 'b']) {
      await bench.store.release(await bench.claim({ jobId }))
      bench.now += 1
    }
    assert.deepEqual(await bench.store.prune({ olderThanMs: 0, limit: 2 }), { pruned: 2 })
    assert.deepEqual(await listed(bench), ['b'])
    assert.deepEqual(await bench.store.prune({ olderThanMs: 0, limit: 2 }), { pruned: 1 })
  }),
]

export const operatorLaws: readonly LeaseStoreLaw[] = [
  ...readLaws,
  ...raiseLaws,
  ...endLaws,
  ...pruneLaws,
]

async function listed(bench: Bench, query?: LeaseQuery): Promise<string[]> {
  return (await bench.store.list(query)).map((record) => record.jobId)
}

async function seen(bench: Bench): Promise<object> {
  return defined(await bench.store.get('job'))
}

/** Without the members that are undefined: absent is absent, however it is said. */
function defined(value: object | undefined): object {
  assert.ok(value !== undefined)
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined))
}
