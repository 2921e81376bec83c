import { Cluster } from 'ioredis'
import { createCluster } from 'redis'
import { expect, it, onTestFinished } from 'vitest'
import { WriteGuard, type WriteIntent } from 'writefence'
import {
  type RedisClient,
  RedisFenceStore,
  RedisLeaseStore,
  type RedisTransaction,
} from 'writefence/redis'
import { COMMIT } from '../../src/storage/redis/redis-fence-scripts.ts'
import { describeEngine, problemOf } from './engine.ts'
import { drivers } from './redis-bench.ts'
import { RedisServer } from './redis-server.ts'
import { TcpProxy } from './tcp-proxy.ts'

const problem = await problemOf(() => RedisServer.version())

// Nodes take seconds to find each other.
const patient = { timeout: 20_000 }

const clientOf = {
  ioredis: (ports: number[]): RedisClient =>
    new Cluster(
      ports.map((port) => ({ host: '127.0.0.1', port })),
      { lazyConnect: true },
    ),
  'node-redis': (ports: number[]): RedisClient =>
    createCluster({ rootNodes: ports.map((port) => ({ url: `redis://127.0.0.1:${port}` })) }),
}

/** Masters that share the slots, in their order. */
async function startCluster(count: number): Promise<RedisServer[]> {
  const start = () => RedisServer.start('--cluster-enabled', 'yes')
  const servers = await Promise.all(Array.from({ length: count }, start))
  const share = Math.ceil(16384 / count)
  for (const [i, { redis }] of servers.entries()) {
    const last = Math.min((i + 1) * share, 16384) - 1
    await redis.cluster('ADDSLOTSRANGE', i * share, last)
    await redis.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)
    await redis.cluster('MEET', '127.0.0.1', servers[0]?.port ?? 0)
  }
  for (const { redis } of servers) {
    await expect.poll(() => redis.cluster('INFO'), patient).toContain('cluster_state:ok')
  }
  return servers
}

function intent(generation: number, operationId: string): WriteIntent {
  return { token: { jobId: 'job', generation }, operationId }
}

describeEngine('a Redis Cluster', problem, () => {
  it.each(drivers)(
    'by %s, all of a prefix is in one slot, its effects too',
    async (driver) => {
      const ports = (await startCluster(3)).map(({ port }) => port)
      const options = (prefix: string) => ({ prefix, timeoutMs: 3000 })
      // Prefixes enough that no node has them all.
      for (const prefix of ['eu', 'us', 'asia', 'africa']) {
        const fences = new RedisFenceStore(clientOf[driver](ports), options(prefix))
        const leases = new RedisLeaseStore(clientOf[driver](ports), options(prefix))
        onTestFinished(async () => void (await Promise.all([fences.close(), leases.close()])))
        await Promise.all([fences.createSchema(), leases.createSchema()])
        const guard = new WriteGuard(fences)
        const credit = async (tx: RedisTransaction) => {
          const balance = Number((await tx.read('GET', `${tx.hashTag}balance`)) ?? 0) + 5
          tx.call('SET', `${tx.hashTag}balance`, balance)
          return balance
        }
        const claim = await leases.claim({ jobId: 'job', owner: 'w', ttlMs: 60_000 })
        expect(claim).toMatchObject({ status: 'claimed', lease: { generation: 1 } })
        expect(await guard.write(intent(2, 'x'), credit)).toMatchObject({ result: 5 })
        expect(await guard.write(intent(2, 'x'), credit)).toMatchObject({ status: 'replayed' })
        const stale = guard.write(intent(1, 'y'), credit)
        await expect(stale).rejects.toMatchObject({ code: 'stale' })
        expect(await guard.prune({ olderThanMs: 0 })).toEqual({ pruned: 1 })

        const elsewhere = guard.write(intent(2, 'z'), (tx) => {
          for (const name of ['one', 'two', 'three']) tx.call('SET', `{${name}}key`, 1)
        })
        await expect(elsewhere).rejects.toThrow(/slot|non local/)
        await guard.write(intent(2, 'z'), credit)
      }
    },
    60_000,
  )

  it.each(drivers)(
    'by %s, nodes that fall silent fail the calls, and no connection is left behind',
    async (driver) => {
      const servers = await startCluster(3)
      const ports = servers.map(({ port }) => port)
      const store = new RedisFenceStore(clientOf[driver](ports), { timeoutMs: 500 })
      await store.createSchema()
      const guard = new WriteGuard(store)
      for (const server of servers) server.pause()
      for (const generation of [1, 2, 3]) {
        const write = guard.write(intent(generation, 'late'), (tx) => tx.call('INCR', 'n'))
        await expect(write).rejects.toMatchObject({ code: 'store_unavailable' })
      }
      for (const server of servers) server.resume()
      const write = () => guard.write(intent(4, 'x'), (tx) => tx.call('INCR', `${tx.hashTag}n`))
      // They have to find each other again first.
      await expect.poll(() => write().catch(({ code }) => code), patient).toBeTypeOf('object')
      expect((await write()).highestGeneration).toBe(4)
      await store.close()
      for (const { redis } of servers) {
        const clients = async () => String(await redis.client('LIST', 'TYPE', 'NORMAL'))
        await expect.poll(async () => (await clients()).trim().split('\n').length).toBe(1)
      }
    },
    60_000,
  )

  it.each(drivers)(
    'by %s, a commit whose connection is cut is not sent twice',
    async (driver) => {
      const [server, other] = await startCluster(2)
      if (server === undefined || other === undefined) throw new Error('no cluster')
      const proxy = await TcpProxy.to('127.0.0.1', server.port)
      onTestFinished(() => proxy.close())
      // The address that the node gives of itself is the proxy's.
      await server.redis.config('SET', 'cluster-announce-ip', '127.0.0.1')
      await server.redis.config('SET', 'cluster-announce-port', proxy.port)
      const slots = () => other.redis.cluster('SLOTS')
      await expect
        .poll(async () => JSON.stringify(await slots()), patient)
        .toContain(`${proxy.port}`)
      const prefix = 'eu'
      expect(await server.redis.cluster('KEYSLOT', prefix)).toBeLessThan(8192)
      const store = new RedisFenceStore(clientOf[driver]([proxy.port, other.port]), { prefix })
      onTestFinished(() => store.close())
      await store.createSchema()
      const guard = new WriteGuard(store)
      const append = (text: string) => (tx: RedisTransaction) =>
        tx.call('RPUSH', `${tx.hashTag}log`, text)
      await guard.write(intent(1, 'x'), append('first'))

      const open = proxy.open
      const cut = proxy.when(COMMIT.sha, 'cut_answer')
      const write = guard.write({ token: { jobId: 'job', generation: 1 } }, append('once'))
      let hasFailed = false
      write.catch(() => {
        hasFailed = true
      })
      await cut
      // Only one conversation is cut: what would be sent again would arrive.
      await expect.poll(() => hasFailed || proxy.open < open, { interval: 5 }).toBe(true)
      proxy.resume()
      await expect(write).rejects.toMatchObject({ code: 'store_unavailable', retryable: false })
      await guard.write(intent(1, 'y'), append('next'))
      const log = await server.redis.lrange(`{${prefix}}log`, 0, -1)
      expect(log).toEqual(['first', 'once', 'next'])
    },
    60_000,
  )
})
