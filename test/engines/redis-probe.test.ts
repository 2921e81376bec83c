import { describe, expect, it } from 'vitest'
import { WriteGuard } from 'writefence'
import type { RedisTransaction } from 'writefence/redis'
import { type Credit, missingOf } from '../probe/express-destination.ts'
import { describeEngine } from './engine.ts'
import { type Driver, drivers, RedisBench } from './redis-bench.ts'

const bench = await RedisBench.open()

const keyOf = (jobId: string) => bench.key(`credits:${jobId}`)

/** The write is committed only if the number that it read still holds. */
const within =
  ({ jobId, operationId }: Credit) =>
  async (tx: RedisTransaction) => {
    const before = Number(await tx.read('LLEN', keyOf(jobId)))
    tx.call('RPUSH', keyOf(jobId), operationId)
    return { number: before + 1 }
  }

async function unaware({ jobId, operationId }: Credit) {
  return { number: await bench.redis.rpush(keyOf(jobId), operationId) }
}

async function open(driver: Driver) {
  const store = await bench.fences({ driver })
  return { guard: new WriteGuard(store), within, unaware, close: () => store.close() }
}

describeEngine('a destination on Express over Redis', bench.problem, () => {
  describe.each(drivers)('by %s', (driver) => {
    it.each(['write', 'handler'] as const)(
      "has every property with protect: '%s'",
      async (protect) => {
        const effects = (jobId: string) => bench.redis.lrange(keyOf(jobId), 0, -1)
        const guarding = { open: () => open(driver), effects, fencing: { protect } }
        expect(await missingOf(guarding)).toEqual([])
      },
      120_000,
    )
  })
})
