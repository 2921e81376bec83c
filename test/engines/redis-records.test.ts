import { beforeEach, expect, it } from 'vitest'
import { WriteGuard, type WriteIntent } from 'writefence'
import type { RedisTransaction } from 'writefence/redis'
import { describeEngine } from './engine.ts'
import { RedisBench } from './redis-bench.ts'

const bench = await RedisBench.open()
const { redis } = bench

function intent(generation: number, operationId?: string, jobId = 'job'): WriteIntent {
  return { token: { jobId, generation, leaseId: 'a' }, operationId }
}

describeEngine('what is stored on Redis', bench.problem, () => {
  let guard: WriteGuard<RedisTransaction, 'async'>

  beforeEach(async () => {
    guard = new WriteGuard(await bench.fences())
  })

  it('deadlines and ages are by the clock of the server', async () => {
    const [seconds] = await redis.time()
    const before = Number(seconds) * 1000
    let inFlight: string | null = null
    await guard.effect(
      intent(1, 'x'),
      async () => {
        inFlight = await redis.hget(bench.key(':in-flight:["","job"]'), 'x')
        expect(await guard.inspect('job')).toMatchObject({ inFlight: 1, overdue: 0 })
      },
      { deadlineMs: 60_000 },
    )
    const deadline = Number.parseInt(inFlight ?? '', 10)
    const applied = Number(await redis.zscore(bench.key(':applied'), '["","job"]\nx'))
    const after = (Number((await redis.time())[0]) + 1) * 1000
    for (const [name, at] of Object.entries({ deadline: deadline - 60_000, applied })) {
      expect(at, name).toBeGreaterThanOrEqual(before)
      expect(at, name).toBeLessThanOrEqual(after)
    }
    expect(await guard.prune({ olderThanMs: 60_000 })).toEqual({ pruned: 0 })
  })

  it('no key of a store ever expires, so that no policy for volatile keys evicts it', async () => {
    await guard.write(intent(1, 'x'), (tx) => bench.append(tx, 'once'))
    await guard.effect(intent(1, 'y'), async () => 'done')
    await guard.advance(intent(2).token)
    const keys = await redis.keys(bench.key('*'))
    expect(keys.length).toBeGreaterThan(3)
    for (const key of keys) expect(await redis.pttl(key), key).toBe(-1)
  })

  it('an operation that has ended is out of the index of those that have not', async () => {
    const failed = guard.effect(intent(1, 'x'), async () => Promise.reject(new Error('boom')))
    await expect(failed).rejects.toThrow('boom')
    expect(await redis.zcard(bench.key(':unsettled'))).toBe(1)
    await guard.resolve({ jobId: 'job', operationId: 'x' }, { status: 'not_applied' })
    expect(await redis.zcard(bench.key(':unsettled'))).toBe(0)
    await guard.effect(intent(1, 'y'), async () => 'done')
    await guard.write(intent(1, 'z'), () => {})
    expect(await redis.zcard(bench.key(':unsettled'))).toBe(0)
    expect(await redis.zcard(bench.key(':applied'))).toBe(2)
  })

  it('in report mode a refused write takes place and leaves the record as it is', async () => {
    await guard.write({ ...intent(1, 'x'), fingerprint: 'f' }, () => 'first')
    const report = { ...intent(1, 'x'), fingerprint: 'g', mode: 'report' } as const
    const run = await guard.write(report, (tx) => bench.append(tx, 'reported'))
    expect(run.status).toBe('applied')
    expect(await bench.log()).toEqual(['reported'])
    const again = await guard.write({ ...intent(1, 'x'), fingerprint: 'f' }, () => 'second')
    expect(again).toMatchObject({ status: 'replayed', result: 'first' })
  })

  it('pruning finds the records of sealed jobs among others, page after page', async () => {
    for (const jobId of ['a', 'b', 'c']) {
      await guard.write(intent(1, 'x', `${jobId} sealed`), () => {})
      await guard.write(intent(1, 'x', `${jobId} open`), () => {})
      await guard.seal(intent(1, undefined, `${jobId} sealed`).token)
    }
    const request = { olderThanMs: 0, sealedOnly: true, limit: 4 }
    expect(await guard.prune(request)).toEqual({ pruned: 3 })
    expect(await guard.prune(request)).toEqual({ pruned: 0 })
    expect(await guard.prune({ olderThanMs: 0 })).toEqual({ pruned: 3 })
  })

  it('a list goes on after its first page', async () => {
    const jobs = Array.from({ length: 501 }, (_, i) => `job ${i}`)
    const lose = (jobId: string, generation: number) =>
      guard
        .effect(intent(generation, 'x', jobId), () => Promise.reject(new Error('boom')))
        .catch(() => {})
    await Promise.all(jobs.map((jobId) => lose(jobId, 1)))
    await lose('last', 2)
    expect(await guard.unsettled({ jobId: 'last' })).toMatchObject([{ generation: 2 }])
    expect(await guard.unsettled({ limit: 1000 })).toHaveLength(502)
    const leases = await bench.leases()
    await Promise.all(jobs.map((jobId) => leases.raise(jobId, 1)))
    await leases.claim({ jobId: 'last', owner: 'w', ttlMs: 60_000 })
    expect(await leases.list({ owner: 'w' })).toMatchObject([{ jobId: 'last' }])
    expect(await leases.list({ limit: 1000 })).toHaveLength(502)
  })

  it('pruning leases ends, also where somebody has deleted one under its index', async () => {
    const leases = await bench.leases()
    const claim = await leases.claim({ jobId: 'job', owner: 'w', ttlMs: 1000 })
    if (claim.status === 'claimed') await leases.release(claim.lease)
    await redis.del(bench.key(':lease:job'))
    expect(await leases.prune({ olderThanMs: 0 })).toEqual({ pruned: 0 })
  })
})
