/** What a holder may do, and that nobody else can (rule 2). */

import assert from 'node:assert/strict'
import type { LeaseStore } from '../lease/lease-store.ts'
import {
  asHolder,
  assertLost,
  claimed,
  holderVerbs,
  type LeaseStoreLaw,
  law,
  TTL,
  wants,
} from './lease-store-context.ts'

const others = {
  owner: { owner: 'worke' },
  generation: { generation: 2 },
  leaseId: { leaseId: 'someone else' },
}

export const holderLaws: readonly LeaseStoreLaw[] = [
  ...holderVerbs.flatMap((verb) =>
    Object.entries(others).map(([field, change]) =>
      law(`${verb} with another ${field} is refused and changes nothing`, async (bench) => {
        await bench.store.release(await bench.claim())
        await bench.store.raise('job', 2)
        const lease = await bench.claim()
        assert.equal(lease.generation, 3)
        await bench.unchanged('job', async () => {
          const answer = await asHolder(bench.store, verb, { ...lease, ...change })
          assert.deepEqual(answer, { status: 'lost', reason: 'superseded' })
        })
        assert.equal(
          (await asHolder(bench.store, verb, lease)).status.slice(0, 5),
          verb.slice(0, 5),
        )
      }),
    ),
  ),

  law('a job that was never claimed is not known to its would-be holder', async (bench) => {
    const key = { jobId: 'job', owner: 'w', generation: 1, leaseId: 'l' }
    await assertLost(bench.store, key, 'unknown_job')
    assert.equal(await bench.store.get('job'), undefined)
  }),

  law('a generation that this store never gave out is not known to it', async (bench) => {
    const lease = await bench.claim()
    await bench.unchanged('job', async () => {
      await assertLost(bench.store, { ...lease, generation: 9 }, 'unknown_job')
    })
  }),

  law('a renewal lasts its ttl from now, under the same generation and leaseId', async (bench) => {
    const lease = await bench.claim()
    bench.now += 10_000
    assert.deepEqual(await bench.store.renew({ ...lease, ttlMs: 40_000 }), {
      status: 'renewed',
      lapsed: false,
      lease: { ...lease, ttlMs: 40_000, leaseUntil: bench.now + 40_000 },
    })
    bench.now += 39_999
    await bench.held()
    bench.now += 1
    assert.equal((await bench.claim()).generation, 2)
  }),

  law('a renewal can shorten a lease', async (bench) => {
    const lease = await bench.claim()
    await bench.store.renew({ ...lease, ttlMs: 1 })
    bench.now += 1
    assert.equal((await bench.claim()).generation, 2)
  }),

  law('R14: a renewal whose answer was lost can be repeated', async (bench) => {
    const lease = await bench.claim()
    for (let i = 0; i < 3; i += 1) {
      const answer = await bench.store.renew(lease)
      assert.deepEqual(answer, { status: 'renewed', lapsed: false, lease })
    }
  }),

  law('R08: a late renewal succeeds while nobody has claimed, and says so', async (bench) => {
    const lease = await bench.claim()
    bench.now += TTL
    assert.deepEqual(await bench.store.renew(lease), {
      status: 'renewed',
      lapsed: true,
      lease: { ...lease, leaseUntil: bench.now + TTL },
    })
    await bench.held()
    bench.now += TTL - 1
    const again = await bench.store.renew(lease)
    assert.equal(again.status === 'renewed' && again.lapsed, false)
  }),

  law('R07: one who was overtaken is told so, though the job is free again', async (bench) => {
    const first = await bench.claim()
    bench.now += TTL
    await bench.store.release(await bench.claim({ owner: 'b' }))
    await bench.unchanged('job', () => assertLost(bench.store, first, 'superseded'))
  }),

  law('R11: a completion from before leaves the new lease alone', async (bench) => {
    const first = await bench.claim({ owner: 'a' })
    bench.now += TTL
    const second = await bench.claim({ owner: 'b' })
    await bench.unchanged('job', () => assertLost(bench.store, first, 'superseded'))
    assert.equal((await bench.store.renew(second)).status, 'renewed')
    const done = await bench.store.complete(second)
    assert.deepEqual(done, { status: 'completed', lapsed: false })
    await assertLost(bench.store, first, 'superseded')
  }),

  law('completing is final for everyone, and repeating it changes nothing', async (bench) => {
    const lease = await bench.claim()
    const done = { status: 'completed', lapsed: false }
    assert.deepEqual(await bench.store.complete(lease), done)
    bench.now += 10 * TTL
    await bench.unchanged('job', async () => {
      assert.deepEqual(await bench.store.complete(lease), done)
      const lost = { status: 'lost', reason: 'completed' }
      assert.deepEqual(await bench.store.renew(lease), lost)
      assert.deepEqual(await bench.store.release(lease), lost)
    })
  }),

  law('a late completion says that it was late each time it is repeated', async (bench) => {
    const lease = await bench.claim()
    bench.now += TTL
    for (let i = 0; i < 3; i += 1) {
      const answer = await bench.store.complete(lease)
      assert.deepEqual(answer, { status: 'completed', lapsed: true })
      bench.now -= TTL
    }
  }),

  law('a completion one millisecond before the end is not late', async (bench) => {
    const lease = await bench.claim()
    bench.now += TTL - 1
    const answer = await bench.store.complete(lease)
    assert.deepEqual(answer, { status: 'completed', lapsed: false })
  }),

  ...[0, TTL - 1, TTL, 5 * TTL].map((wait) =>
    law(`R10/R16: what is given back after ${wait} ms is claimable at once`, async (bench) => {
      const lease = await bench.claim()
      bench.now += wait
      for (let i = 0; i < 2; i += 1) {
        assert.deepEqual(await bench.store.release(lease), { status: 'released' })
      }
      const lost = { status: 'lost', reason: 'released' }
      assert.deepEqual(await bench.store.renew(lease), lost)
      assert.deepEqual(await bench.store.complete(lease), lost)
      assert.equal((await bench.claim({ owner: 'b' })).generation, 2)
    }),
  ),

  law('a release repeated after a new claim takes nothing from it', async (bench) => {
    const first = await bench.claim({ leaseId: 'l' })
    await bench.store.release(first)
    const second = await bench.claim({ leaseId: 'm' })
    await bench.unchanged('job', () => assertLost(bench.store, first, 'superseded'))
    assert.equal((await bench.store.renew(second)).status, 'renewed')
  }),

  law('R20: owners are compared exactly', async (bench) => {
    const lease = await bench.claim({ owner: 'w-1' })
    for (const owner of ['w-10', 'W-1', 'w-1 ', ' w-1', 'w-', 'w_1', 'w-１']) {
      await assertLost(bench.store, { ...lease, owner }, 'superseded')
    }
    assert.equal((await bench.store.renew(lease)).status, 'renewed')
  }),

  law('leaseIds are compared exactly', async (bench) => {
    const lease = await bench.claim({ leaseId: 'é' })
    for (const leaseId of ['e\u0301', 'É', 'é ', 'e', '%']) {
      await assertLost(bench.store, { ...lease, leaseId }, 'superseded')
    }
    assert.equal((await bench.store.complete(lease)).status, 'completed')
  }),

  ...holderVerbs.map((verb) =>
    law(`R13: of a late ${verb} and a claim at once, exactly one wins`, async (bench) => {
      const [a, b] = (await bench.openMany(2)) as [LeaseStore, LeaseStore]
      for (let round = 0; round < 20; round += 1) {
        const jobId = `job ${round}`
        const lease = await bench.claim({ jobId })
        bench.now += TTL
        const calls = [() => asHolder(a, verb, lease), () => b.claim(wants({ jobId, owner: 'b' }))]
        if (round % 2 === 1) calls.reverse()
        const answers = await Promise.all(calls.map((call) => call()))
        if (round % 2 === 1) answers.reverse()
        const [mine, theirs] = answers as [{ status: string }, { status: string }]
        const free = verb === 'release' && mine.status === 'released'
        const won = mine.status !== 'lost' && !free
        assert.equal(theirs.status === 'claimed', !won, `${mine.status} beside ${theirs.status}`)
        if (theirs.status !== 'claimed') continue
        const second = claimed(theirs as never)
        assert.equal(second.generation, 2)
        assert.equal((await a.renew(second)).status, 'renewed')
      }
    }),
  ),
]
