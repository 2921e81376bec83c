import { describe, it } from 'vitest'
import { fenceStoreLaws, leaseStoreLaws } from 'writefence/conformance'
import type { RedisTransaction } from 'writefence/redis'
import { describeEngine } from './engine.ts'
import { drivers, RedisBench } from './redis-bench.ts'

const bench = await RedisBench.open()

// Redis has no transaction of the user's own: `within` refuses whatever it is given.
const withoutWithin = fenceStoreLaws.filter(({ name }) => !name.startsWith('within:'))

describeEngine('Redis', bench.problem, () => {
  describe.each(drivers)('by %s, the laws of a lease store', (driver) => {
    it.each(leaseStoreLaws)('$name', (law) =>
      law.run({ open: (now) => bench.leases({ driver, now }) }),
    )
  })

  describe.each(drivers)('by %s, the laws of a fence store', (driver) => {
    it.each(withoutWithin)('$name', (law) =>
      law.run({
        open: (now) => bench.fences({ driver, now }),
        append: (tx, text) => bench.append(tx, text),
        log: () => bench.log(),
        transaction: async (body) => body(undefined as unknown as RedisTransaction),
      }),
    )
  })
})
