/** Who gets a job, and with which generation (rules 1, 3 and 4). */

import assert from 'node:assert/strict'
import type { LeaseStore } from '../lease/lease-store.ts'
import { MAX_GENERATION } from '../token.ts'
import { claimed, type LeaseStoreLaw, law, TTL, wants } from './lease-store-context.ts'

const DAYS = 24 * 60 * 60 * 1000

export const claimLaws: readonly LeaseStoreLaw[] = [
  law('R22: the first lease of a job has generation 1 and ends a ttl from now', async (bench) => {
    const lease = await bench.claim({ owner: 'w', leaseId: 'l' })
    assert.deepEqual(lease, {
      jobId: 'job',
      generation: 1,
      leaseId: 'l',
      owner: 'w',
      leaseUntil: bench.now + TTL,
      ttlMs: TTL,
    })
  }),

  law('a claim without a leaseId gets one that nobody could guess', async (bench) => {
    const leases = await Promise.all(['a', 'b', 'c'].map((jobId) => bench.claim({ jobId })))
    const ids = leases.map((lease) => lease.leaseId)
    assert.equal(new Set(ids).size, 3)
    // 128 bits take 22 characters of the densest usual alphabet.
    for (const id of ids) assert.ok(id.length >= 22, id)
  }),

  law('R118: the longest and the shortest lease end to the millisecond', async (bench) => {
    const long = await bench.claim({ ttlMs: 366 * DAYS })
    assert.equal(long.leaseUntil, bench.now + 366 * DAYS)
    const short = await bench.claim({ jobId: 'short', ttlMs: 1 })
    assert.equal(short.leaseUntil, bench.now + 1)
    bench.now += 1
    assert.equal((await bench.claim({ jobId: 'short' })).generation, 2)
  }),

  law('R19: a live lease is refused to all, its owner by name included', async (bench) => {
    const lease = await bench.claim({ owner: 'a' })
    bench.now += 1_000
    for (const owner of ['a', 'b']) {
      assert.deepEqual(await bench.held({ owner }), {
        status: 'held',
        owner: 'a',
        generation: 1,
        leaseUntil: lease.leaseUntil,
        retryAfterMs: TTL - 1_000,
      })
    }
  }),

  law('a job is claimable from the very end of its lease on, not before', async (bench) => {
    await bench.claim()
    bench.now += TTL - 1
    assert.equal((await bench.held()).retryAfterMs, 1)
    bench.now += 1
    assert.equal((await bench.claim()).generation, 2)
  }),

  law('R16: claims that are refused never move the end of the lease', async (bench) => {
    const { leaseUntil } = await bench.claim()
    await bench.unchanged('job', async () => {
      for (let i = 0; i < 20; i += 1) {
        assert.equal(
          (await bench.held({ owner: `w${i}`, ttlMs: 90 * DAYS })).leaseUntil,
          leaseUntil,
        )
      }
    })
    bench.now = leaseUntil
    await bench.claim()
  }),

  law('R59: each claim has the generation of the last one plus one, 9 to 10 too', async (bench) => {
    for (let generation = 1; generation <= 24; generation += 1) {
      const lease = await bench.claim()
      assert.equal(lease.generation, generation)
      if (generation % 4 === 0) await bench.store.release(lease)
      else if (generation % 4 === 1) await bench.store.forceRelease('job')
      else if (generation % 4 === 2) bench.now += TTL
      else {
        await bench.store.complete(lease)
        await bench.store.reopen('job')
      }
    }
  }),

  law('of ten first claims at once, on handles of their own, one wins', async (bench) => {
    await oneWins(await bench.openMany(10), 1)
  }),

  law('of ten claims on a lease that ran out, one wins', async (bench) => {
    await bench.claim()
    bench.now += TTL
    await oneWins(await bench.openMany(10), 2)
  }),

  law('of ten claims at once on one handle, one wins', async (bench) => {
    await oneWins(new Array(10).fill(bench.store), 1)
  }),

  law('a claim repeated under its leaseId gets the same lease, not a longer one', async (bench) => {
    const lease = await bench.claim({ owner: 'a', leaseId: 'l' })
    bench.now += TTL - 1
    await bench.unchanged('job', async () => {
      assert.deepEqual(await bench.claim({ owner: 'a', leaseId: 'l', ttlMs: 9 * TTL }), lease)
    })
    bench.now += 1
    assert.equal((await bench.claim({ owner: 'b' })).generation, 2)
  }),

  law('ten deliveries of one claim make one lease', async (bench) => {
    const stores = await bench.openMany(10)
    const answers = await Promise.all(stores.map((store) => store.claim(wants({ leaseId: 'l' }))))
    for (const answer of answers) assert.deepEqual(claimed(answer), claimed(answers[0] as never))
    assert.equal((await bench.store.get('job'))?.generation, 1)
  }),

  law('a repetition needs both owner and leaseId: either alone is refused', async (bench) => {
    await bench.claim({ owner: 'a', leaseId: 'l' })
    await bench.unchanged('job', async () => {
      assert.equal((await bench.held({ owner: 'b', leaseId: 'l' })).owner, 'a')
      await bench.held({ owner: 'a', leaseId: 'm' })
      await bench.held({ owner: 'a' })
    })
  }),

  law('once its lease is over, the same leaseId makes an ordinary claim', async (bench) => {
    const same = { owner: 'a', leaseId: 'l' }
    await bench.claim(same)
    bench.now += TTL
    const second = await bench.claim(same)
    assert.equal(second.generation, 2)
    assert.equal(second.leaseUntil, bench.now + TTL)
    await bench.store.release(second)
    const third = await bench.claim(same)
    assert.equal(third.generation, 3)
    await bench.store.complete(third)
    const answer = await bench.store.claim(wants(same))
    assert.deepEqual(answer, { status: 'completed', generation: 3 })
  }),

  law('a completed job is not claimable, however late', async (bench) => {
    await bench.store.complete(await bench.claim())
    for (const wait of [0, TTL, 400 * DAYS]) {
      bench.now += wait
      const answer = await bench.store.claim(wants({ owner: 'b' }))
      assert.deepEqual(answer, { status: 'completed', generation: 1 })
    }
  }),

  law('R17: where the clock went back, a lease lasts its own ttl from then on', async (bench) => {
    await bench.claim({ ttlMs: 5_000 })
    bench.now -= 60 * 60 * 1000
    const back = bench.now
    const expected = { leaseUntil: back + 5_000, retryAfterMs: 5_000 }
    assert.deepEqual(pick(await bench.held({ ttlMs: 90 * DAYS })), expected)
    assert.equal((await bench.store.get('job'))?.leaseUntil, back + 5_000)
    bench.now += 4_999
    assert.equal((await bench.held({ ttlMs: 1 })).leaseUntil, back + 5_000)
    bench.now += 1
    assert.equal((await bench.claim()).generation, 2)
  }),

  law('R01: a clock that is wrong at the client decides nothing', async (bench) => {
    const now = Date.now
    const store = await bench.openOnEngineTime()
    try {
      for (const [generation, shift] of [3 * 60_000, -3 * 60_000, 9e15].entries()) {
        Date.now = () => now() + shift
        const jobId = `shifted ${generation}`
        claimed(await store.claim(wants({ jobId, ttlMs: 120_000 })))
        Date.now = () => now() - shift
        const answer = await store.claim(wants({ jobId, ttlMs: 120_000, owner: 'b' }))
        assert.equal(answer.status, 'held')
      }
    } finally {
      Date.now = now
    }
  }),

  law('R58: generations are exact up to the highest, and none comes after it', async (bench) => {
    await bench.store.raise('job', MAX_GENERATION - 3)
    for (const generation of [MAX_GENERATION - 2, MAX_GENERATION - 1, MAX_GENERATION]) {
      const lease = await bench.claim()
      assert.equal(lease.generation, generation)
      assert.equal((await bench.store.renew(lease)).status, 'renewed')
      assert.deepEqual(await bench.store.release(lease), { status: 'released' })
    }
    await bench.unchanged('job', async () => {
      await assert.rejects(bench.store.claim(wants()), {
        code: 'store_unavailable',
        retryable: false,
      })
    })
  }),
]

async function oneWins(stores: readonly LeaseStore[], generation: number): Promise<void> {
  const answers = await Promise.all(
    stores.map((store, i) => store.claim(wants({ owner: `w${i}` }))),
  )
  const winners = answers.flatMap((answer) => (answer.status === 'claimed' ? [answer.lease] : []))
  assert.equal(winners.length, 1)
  assert.equal(winners[0]?.generation, generation)
  for (const answer of answers) {
    if (answer.status === 'claimed') continue
    assert.equal(answer.status, 'held')
    assert.equal(answer.owner, winners[0]?.owner)
    assert.equal(answer.generation, generation)
  }
}

function pick({ leaseUntil, retryAfterMs }: { leaseUntil: number; retryAfterMs: number }) {
  return { leaseUntil, retryAfterMs }
}
