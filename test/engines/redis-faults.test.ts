import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { StoreUnavailableError, WriteGuard, type WriteIntent } from 'writefence'
import { RedisFenceStore, type RedisTransaction } from 'writefence/redis'
import { COMMIT, PRUNE, STATUS, VIEW } from '../../src/storage/redis/redis-fence-scripts.ts'
import { PUT, ROWS } from '../../src/storage/redis/redis-lease-statements.ts'
import { describeEngine } from './engine.ts'
import { drivers, RedisBench } from './redis-bench.ts'
import { TcpProxy } from './tcp-proxy.ts'

const bench = await RedisBench.open()
const { redis } = bench
// Long enough for a busy machine to get as far as the fault, short enough to wait for.
const timeoutMs = 1000

function intent(generation: number, operationId?: string, jobId = 'job'): WriteIntent {
  return { token: { jobId, generation, leaseId: 'a' }, operationId }
}

async function serverTime(): Promise<number> {
  const [seconds, micros] = await redis.time()
  return Number(seconds) * 1000 + Number(micros) / 1000
}

/** Resolves once the server's clock has gone on for so long. */
async function serverTimePasses(ms: number): Promise<void> {
  const until = (await serverTime()) + ms
  while ((await serverTime()) < until) await new Promise((resolve) => setImmediate(resolve))
}

for (const driver of drivers) {
  describeEngine(`a connection to Redis that fails, by ${driver}`, bench.problem, () => {
    let proxy: TcpProxy
    let url: string
    let guard: WriteGuard<RedisTransaction, 'async'>
    /** The same, but soon out of patience. */
    let hasty: WriteGuard<RedisTransaction, 'async'>
    const append = (text: string) => (tx: RedisTransaction) => bench.append(tx, text)

    beforeEach(async () => {
      proxy = await TcpProxy.to(bench.host.host, bench.host.port)
      onTestFinished(() => proxy.close())
      url = `redis://127.0.0.1:${proxy.port}`
      guard = new WriteGuard(await bench.fences({ driver, url }))
      hasty = new WriteGuard(await bench.fences({ driver, url, timeoutMs }))
      // From here on the server knows the scripts by their digests.
      await guard.write(intent(1, 'first'), append('first'))
      await hasty.advance(intent(1).token)
    })

    it('a commit that hangs is given up, and never lands after that', async () => {
      const hung = proxy.when(COMMIT.sha, 'hang')
      const write = hasty.write(intent(1, 'x'), append('late'))
      await hung
      await expect(write).rejects.toMatchObject({ code: 'store_unavailable', retryable: true })
      // The proxy has delivered what it held back when the connection was destroyed.
      await expect.poll(() => proxy.open).toBe(1)
      proxy.resume()
      expect((await guard.write(intent(1, 'y'), append('next'))).status).toBe('applied')
      expect(await bench.log()).toEqual(['first', 'next'])
      expect((await guard.write(intent(1, 'x'), append('x'))).status).toBe('applied')
    })

    it('a commit whose answer is lost is not known, and is recognised when repeated', async () => {
      const lost = proxy.when(COMMIT.sha, 'lose_answers')
      const write = hasty.write(intent(1, 'x'), append('once'))
      await lost
      await expect(write).rejects.toBeInstanceOf(StoreUnavailableError)
      proxy.resume()
      expect((await guard.write(intent(1, 'x'), append('twice'))).status).toBe('replayed')
      expect(await bench.log()).toEqual(['first', 'once'])
    })

    it('a connection that is cut at a commit is not known, and nothing is sent twice', async () => {
      const cut = proxy.when(COMMIT.sha, 'cut_answer')
      const write = guard.write(intent(1), append('once'))
      await cut
      const failed = { code: 'store_unavailable', retryable: false }
      await expect(write).rejects.toMatchObject(failed)
      proxy.resume()
      await guard.write(intent(1, 'y'), append('next'))
      expect(await bench.log()).toEqual(['first', 'once', 'next'])
    })

    it('a server that falls silent fails all that waits, and is found again', async () => {
      const hung = proxy.when(VIEW.sha, 'hang')
      const jobs = Array.from({ length: 20 }, (_, i) => `job ${i}`)
      const writes = jobs.map((jobId) => hasty.write(intent(1, 'x', jobId), append('late')))
      await hung
      const ended = await Promise.allSettled(writes)
      for (const one of ended) {
        expect(one).toMatchObject({ status: 'rejected', reason: { code: 'store_unavailable' } })
      }
      proxy.resume()
      await hasty.write(intent(1, 'y'), append('next'))
      expect(await bench.log()).toEqual(['first', 'next'])
    })

    it('a connection that was lost while nobody used it costs no call', async () => {
      const dropped = proxy.accepted
      proxy.dropAll()
      await expect.poll(() => proxy.open).toBe(0)
      // Its end has arrived at the client when the turn is over.
      await new Promise((resolve) => setImmediate(resolve))
      expect((await guard.write(intent(1, 'x'), append('next'))).status).toBe('applied')
      expect(proxy.accepted).toBe(dropped + 1)
    })

    it('R116: a thousand failing calls leave one connection and no warning', async () => {
      const warnings: Error[] = []
      const keep = (warning: Error) => warnings.push(warning)
      process.on('warning', keep)
      onTestFinished(() => void process.off('warning', keep))
      for (let round = 0; round < 10; round += 1) {
        const cut = proxy.when(VIEW.sha, 'cut')
        const calls = Array.from({ length: 100 }, (_, i) => guard.judge(intent(1, 'x', `job ${i}`)))
        await cut
        for (const one of await Promise.allSettled(calls)) {
          expect(one).toMatchObject({ status: 'rejected', reason: { code: 'store_unavailable' } })
        }
      }
      proxy.resume()
      await Promise.all(Array.from({ length: 100 }, (_, i) => guard.judge(intent(1, `op ${i}`))))
      expect(proxy.open).toBe(2)
      expect(warnings).toEqual([])
    })

    it('R116: a thousand callbacks that throw leave one connection and no turn', async () => {
      const boom = new Error('boom')
      const calls = Array.from({ length: 1000 }, (_, i) =>
        guard.write(intent(1, `op ${i}`, `job ${i % 10}`), () => {
          throw boom
        }),
      )
      const ended = await Promise.allSettled(calls)
      expect(ended.every((one) => one.status === 'rejected' && one.reason === boom)).toBe(true)
      expect(proxy.open).toBe(2)
      await guard.write(intent(1, 'x'), append('next'))
      expect(await bench.log()).toEqual(['first', 'next'])
    })

    it('R02: a claim that is delayed for longer than its ttl starts over', async () => {
      const leases = await bench.leases({ driver, url })
      await leases.raise('warm up', 1)
      const hung = proxy.when(PUT.sha, 'hang')
      const claim = leases.claim({ jobId: 'job', owner: 'w', ttlMs: 100 })
      await hung
      await serverTimePasses(101)
      const late = Math.floor(await serverTime())
      proxy.resume()
      const answer = await claim
      expect(answer).toMatchObject({ status: 'claimed', lease: { generation: 1 } })
      if (answer.status !== 'claimed') return
      expect(answer.lease.leaseUntil).toBeGreaterThanOrEqual(late + 100)
      const stored = await bench.redis.get(bench.key(':lease:job'))
      expect(JSON.parse(stored ?? '')).toMatchObject({ leaseUntil: answer.lease.leaseUntil })
    })

    it('a claim that hangs is given up, and never lands after that', async () => {
      const impatient = await bench.leases({ driver, url, timeoutMs })
      await impatient.raise('warm up', 1)
      const hung = proxy.when(PUT.sha, 'hang')
      const claim = impatient.claim({ jobId: 'job', owner: 'w', ttlMs: 60_000 })
      await hung
      await expect(claim).rejects.toMatchObject({ code: 'store_unavailable' })
      await expect.poll(() => proxy.open).toBe(2)
      proxy.resume()
      expect(await (await bench.leases({ driver })).get('job')).toBeUndefined()
    })

    it('a write that is delayed, but not for too long, is committed', async () => {
      const hung = proxy.when(COMMIT.sha, 'hang')
      const write = guard.write(intent(1, 'x'), append('late'))
      await hung
      proxy.resume()
      expect((await write).status).toBe('applied')
    })

    it('what was settled while a list was read is not in it', async () => {
      let settle = () => {}
      const perform = () => new Promise<void>((resolve) => (settle = resolve))
      const effect = guard.effect(intent(1, 'x'), perform)
      await expect.poll(() => guard.unsettled()).toHaveLength(1)
      const other = new WriteGuard(await bench.fences({ driver, url }))
      const hung = proxy.when(STATUS.sha, 'hang')
      const listed = other.unsettled()
      await hung
      settle()
      await effect
      proxy.resume()
      expect(await listed).toEqual([])
    })

    it('a prune that is delayed spares what was applied anew in the meantime', async () => {
      let now = 1000
      const slow = await bench.fences({ driver, url, now: () => now })
      const fast = await bench.fences({ driver, now: () => now })
      await new WriteGuard(fast).prune({ olderThanMs: 0 })
      await new WriteGuard(fast).write(intent(1, 'x'), append('x'))
      await slow.prune({ olderThanMs: 5000 })
      const hung = proxy.when(PRUNE.sha, 'hang')
      const pruned = slow.prune({ olderThanMs: 0 })
      await hung
      await fast.prune({ olderThanMs: 0 })
      now += 1
      await new WriteGuard(fast).write(intent(1, 'x'), append('x'))
      proxy.resume()
      expect(await pruned).toEqual({ pruned: 0 })
      const again = await new WriteGuard(fast).write(intent(1, 'x'), append('twice'))
      expect(again.status).toBe('replayed')
    })

    it('a prune that is delayed spares a lease that was claimed in the meantime', async () => {
      const slow = await bench.leases({ driver, url })
      const fast = await bench.leases({ driver })
      await fast.raise('job', 1)
      const hung = proxy.when(ROWS.sha, 'hang')
      const pruned = slow.prune({ olderThanMs: 0 })
      await hung
      await fast.claim({ jobId: 'job', owner: 'w', ttlMs: 60_000 })
      proxy.resume()
      expect(await pruned).toEqual({ pruned: 0 })
      expect(await fast.get('job')).toMatchObject({ status: 'leased', owner: 'w', generation: 2 })
    })

    it('the user’s own client is never connected, and stays as it is', async () => {
      const client = bench.client(driver, url)
      const store = new RedisFenceStore(client, { prefix: bench.prefix })
      const accepted = proxy.accepted
      await store.view({ scope: '', jobId: 'job' })
      await store.close()
      expect(proxy.accepted).toBe(accepted + 1)
      expect(Reflect.get(client, driver === 'ioredis' ? 'status' : 'isOpen')).toBe(
        driver === 'ioredis' ? 'wait' : false,
      )
    })

    it('close waits for what is under way, refuses what comes, and hangs up', async () => {
      const closing = new WriteGuard(await bench.fences({ driver, url }))
      const hung = proxy.when(COMMIT.sha, 'hang')
      const under = closing.write(intent(1, 'x'), append('under way'))
      await hung
      const closed = closing.close()
      proxy.resume()
      expect((await under).status).toBe('applied')
      await closed
      await expect(closing.judge(intent(1))).rejects.toThrow('the store is closed')
      await expect.poll(() => proxy.open).toBe(2)
    })
  })
}
