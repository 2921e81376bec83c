import { createServer } from 'node:net'
import { Redis } from 'ioredis'
import { createClient, createClientPool, createSentinel, RESP_TYPES } from 'redis'
import { expect, it, onTestFinished } from 'vitest'
import { StoreUnavailableError, WriteGuard, type WriteIntent } from 'writefence'
import { RedisFenceStore, RedisLeaseStore } from 'writefence/redis'
import { describeEngine } from './engine.ts'
import { drivers, RedisBench } from './redis-bench.ts'

const bench = await RedisBench.open()
const { redis } = bench
const timeoutMs = 300

function intent(generation: number, operationId?: string): WriteIntent {
  return { token: { jobId: 'job', generation, leaseId: 'a' }, operationId }
}

for (const driver of drivers) {
  describeEngine(`a Redis that cannot be used, by ${driver}`, bench.problem, () => {
    const calls = async (url: string) => {
      const fences = new RedisFenceStore(bench.client(driver, url), { timeoutMs })
      const leases = new RedisLeaseStore(bench.client(driver, url), { timeoutMs })
      onTestFinished(async () => void (await Promise.all([fences.close(), leases.close()])))
      const guard = new WriteGuard(fences)
      const effect = async () => expect.unreachable('it ran')
      return Promise.allSettled([
        fences.createSchema(),
        leases.createSchema(),
        guard.write(intent(1, 'x'), effect),
        guard.effect(intent(1, 'x'), effect),
        leases.claim({ jobId: 'job', owner: 'w', ttlMs: 1000 }),
      ])
    }

    it('a port where nobody listens, wrong credentials, a server that says nothing', async () => {
      const mute = createServer((socket) => socket.on('error', () => {}))
      await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
      onTestFinished(() => void mute.close())
      const address = mute.address()
      const port = typeof address === 'object' ? address?.port : 0
      const { host, port: real } = bench.host
      const urls = {
        'redis://127.0.0.1:1': 'ECONNREFUSED',
        [`redis://nobody:wrong@${host}:${real}`]: 'WRONGPASS',
        [`redis://127.0.0.1:${port}`]: 'no answer within 300 ms',
      }
      for (const [url, reason] of Object.entries(urls)) {
        for (const one of await calls(url)) {
          expect(one, url).toMatchObject({ status: 'rejected' })
          if (one.status === 'fulfilled') continue
          expect(one.reason, url).toBeInstanceOf(StoreUnavailableError)
          expect(one.reason.cause, url).toBeInstanceOf(Error)
          expect(one.reason.message, url).toContain(reason)
        }
      }
    })

    it('options of the client that change keys or replies do not reach the stores', async () => {
      const odd = {
        ioredis: () =>
          new Redis(bench.url, {
            lazyConnect: true,
            keyPrefix: 'odd:',
            stringNumbers: true,
            commandTimeout: 1,
            reconnectOnError: () => 2,
            replyMapping: 'resp3',
          }),
        'node-redis': () =>
          createClient({
            url: bench.url,
            keyPrefix: 'odd:',
            commandOptions: {
              typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.NUMBER]: String },
            },
          }),
      }
      const { prefix } = bench
      const store = new RedisFenceStore(odd[driver](), { prefix })
      onTestFinished(() => store.close())
      await store.createSchema()
      const guard = new WriteGuard(store)
      await redis.set(bench.key('n'), 5)
      const { result } = await guard.write(intent(7, 'x'), async (tx) => {
        tx.call('INCR', bench.key('n'))
        return [await tx.read('GET', bench.key('n')), await tx.read('STRLEN', bench.key('n'))]
      })
      expect(result).toEqual(['5', 1])
      expect(await redis.get(bench.key('n'))).toBe('6')
      expect((await guard.inspect('job'))?.highestGeneration).toBe(7)
      await redis.set(bench.key(':fence:["","spoilt"]'), 'no hash')
      await expect(guard.inspect('spoilt')).rejects.toThrow('WRONGTYPE')
      expect(await redis.keys(`odd:${bench.key('*')}`)).toEqual([])
    })

    it('a client of neither driver, or a bad option, is refused when the store is made', () => {
      const client = bench.client(driver)
      const sentinel = createSentinel({ name: 'm', sentinelRootNodes: [{ host: 'x', port: 1 }] })
      const others = [createClientPool(), sentinel, { call() {}, isCluster: false }]
      for (const bad of [undefined, null, {}, 'redis://x', ...others]) {
        expect(() => new RedisFenceStore(bad as never)).toThrow(TypeError)
        expect(() => new RedisLeaseStore(bad as never)).toThrow(TypeError)
      }
      for (const prefix of ['', 'a{b', 'a}b', 'a\nb', 'x'.repeat(101)]) {
        expect(() => new RedisFenceStore(client, { prefix })).toThrow(RangeError)
      }
      expect(() => new RedisFenceStore(client, { prefix: 7 as never })).toThrow(TypeError)
      expect(() => new RedisFenceStore(client, { timeoutMs: 0 })).toThrow(RangeError)
    })
  })
}
