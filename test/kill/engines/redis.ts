/** What the children do on Redis. */

import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { WriteGuard } from '../../../src/guard/write-guard.ts'
import {
  RedisFenceStore,
  RedisLeaseStore,
  type RedisTransaction,
} from '../../../src/storage/redis/index.ts'
import { type Bank, deadlineMs, NotInserted, patienceMs, type Told } from './bank.ts'
import { patiently } from './patience.ts'

/** All effects in their order, and those of each job by operation. */
export const EFFECTS = '{writefence}effects'
const ofJob = (job: string) => `{writefence}effects:${job}`
const writes = (job: string) => `{writefence}writes:${job}`

/** `name` is that of the destination, whichever process it is. */
export async function openBank(
  where: string,
  name: string,
  slowness: number,
): Promise<Bank<RedisTransaction, 'async'>> {
  const redis = connect(where)
  // What a predecessor has sent may not have been read yet: afterwards, nothing of it will be.
  await endNamed(redis, name)
  await patiently(() => redis.client('SETNAME', name))
  const find = async (job: string, operation: string): Promise<Told | undefined> => {
    const nonce = await redis.hget(ofJob(job), operation)
    return nonce === null ? undefined : { nonce }
  }
  return {
    guard: new WriteGuard(new RedisFenceStore(redis, { timeoutMs: patienceMs(slowness) }), {
      deadlineMs: deadlineMs(slowness),
    }),
    within: (effect) => (tx) => {
      tx.call('RPUSH', EFFECTS, JSON.stringify(effect))
      tx.call('HSET', ofJob(effect.job), effect.operation, effect.nonce)
      tx.call('INCR', writes(effect.job))
      return { nonce: effect.nonce }
    },
    async insert(effect) {
      // A connection of its own, which can be told from all others.
      const own = connect(where)
      const id = `${name}-${effect.nonce}`
      try {
        await own.client('SETNAME', id).catch((error: unknown) => {
          throw new NotInserted('no connection', { cause: error })
        })
        await own
          .multi()
          .rpush(EFFECTS, JSON.stringify(effect))
          .hset(ofJob(effect.job), effect.operation, effect.nonce)
          .exec()
      } catch (error) {
        if (error instanceof NotInserted) throw error
        await endNamed(redis, id)
        const found = await patiently(() => find(effect.job, effect.operation))
        if (found?.nonce !== effect.nonce) throw new NotInserted()
      } finally {
        own.disconnect()
      }
    },
    find,
    count: async (job) => Number((await redis.get(writes(job))) ?? 0),
  }
}

export async function openLeases(where: string, slowness: number): Promise<RedisLeaseStore> {
  return new RedisLeaseStore(connect(where), { timeoutMs: patienceMs(slowness) })
}

/** What has no answer when its connection is lost has failed: nothing is sent a second time. */
function connect(where: string): Redis {
  const redis = new Redis(where, {
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    retryStrategy: () => 50,
  })
  redis.on('error', () => {})
  return redis
}

/** Redis does one command after the other: whoever is gone then has had his last. */
async function endNamed(redis: Redis, name: string): Promise<void> {
  for (;;) {
    const list = String(await patiently(() => redis.client('LIST')))
    const ids = list
      .split('\n')
      .filter((line) => line.includes(` name=${name} `) || line.includes(` name=${name}-`))
      .map((line) => / ?id=(\d+) /.exec(line)?.[1] ?? '')
    if (ids.length === 0) return
    for (const id of ids) await redis.client('KILL', 'ID', Number(id)).catch(() => {})
    await sleep(20)
  }
}
