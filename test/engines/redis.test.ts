import { afterAll, describe, expect, it } from 'vitest'
import { type FenceStoreContext, fenceStoreLaws, leaseStoreLaws } from 'writefence/conformance'
import { RedisFenceStore, RedisLeaseStore, type RedisTransaction } from 'writefence/redis'
import { answers, clear, clients, connect, isRequired, newPrefix } from './redis-clients.ts'

const redis = connect()
afterAll(() => redis.disconnect())

function context(driver: keyof typeof clients, prefix: string) {
  const log = `{${prefix}}log`
  return {
    async open(now: () => number) {
      const store = new RedisFenceStore(clients[driver](), { now, prefix })
      await store.createSchema()
      return store
    },
    append: async (tx, text) => tx.call('RPUSH', log, text),
    log: () => redis.lrange(log, 0, -1),
    // There are none on Redis: the laws of `within` are left out, and it refuses whatever it gets.
    transaction: async (body) => body(undefined as unknown as RedisTransaction),
  } satisfies FenceStoreContext<RedisTransaction, 'async'>
}

async function inPrefix(run: (prefix: string) => Promise<void>): Promise<void> {
  const prefix = newPrefix()
  await run(prefix).finally(() => clear(redis, prefix))
}

const fenceLaws = fenceStoreLaws.filter(({ name }) => !name.startsWith('within:'))

if (await answers()) {
  describe.each(['ioredis', 'node-redis'] as const)('on Redis by %s', (driver) => {
    it.each(fenceLaws)('fence store: $name', (law) =>
      inPrefix((prefix) => law.run(context(driver, prefix))),
    )

    it.each(leaseStoreLaws)('lease store: $name', (law) =>
      inPrefix((prefix) =>
        law.run({
          async open(now) {
            const store = new RedisLeaseStore(clients[driver](), { now, prefix })
            await store.createSchema()
            return store
          },
        }),
      ),
    )
  })
} else {
  it('Redis does not answer: none of its laws were tested', () => expect(isRequired).toBe(false))
}
