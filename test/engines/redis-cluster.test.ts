import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
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
import { describeEngine, problemOf } from './engine.ts'
import { drivers } from './redis-bench.ts'
import { RedisServer } from './redis-server.ts'

const run = promisify(execFile)
const problem = await problemOf(() => run('redis-cli', ['--version']))

const clientOf = {
  ioredis: (ports: number[]): RedisClient =>
    new Cluster(
      ports.map((port) => ({ host: '127.0.0.1', port })),
      { lazyConnect: true },
    ),
  'node-redis': (ports: number[]): RedisClient =>
    createCluster({ rootNodes: ports.map((port) => ({ url: `redis://127.0.0.1:${port}` })) }),
}

/** Three masters that share the slots. */
async function startCluster(): Promise<number[]> {
  const start = () => RedisServer.start('--cluster-enabled', 'yes')
  const servers = await Promise.all([start(), start(), start()])
  const ports = servers.map(({ port }) => port)
  const addresses = ports.map((port) => `127.0.0.1:${port}`)
  await run('redis-cli', ['--cluster', 'create', ...addresses, '--cluster-yes'])
  for (const { redis } of servers) {
    await expect.poll(() => redis.cluster('INFO')).toContain('cluster_state:ok')
  }
  return ports
}

function intent(generation: number, operationId: string): WriteIntent {
  return { token: { jobId: 'job', generation }, operationId }
}

describeEngine('a Redis Cluster', problem, () => {
  it.each(drivers)(
    'by %s, all of a prefix is in one slot, its effects too',
    async (driver) => {
      const ports = await startCluster()
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
})
