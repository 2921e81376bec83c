/** The Redis that the tests run on, by both drivers, and a prefix of their own on it. */

import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import type { RedisClient } from 'writefence/redis'

export const url = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379'

/** What is never used to send anything: the stores connect on their own. */
export const clients: Record<'ioredis' | 'node-redis', (at?: string) => RedisClient> = {
  ioredis: (at = url) => new Redis(at, { lazyConnect: true }),
  'node-redis': (at = url) => createClient({ url: at }),
}

/** A connection for the test itself; whoever opens it ends it. */
export function connect(at = url): Redis {
  const redis = new Redis(at, { lazyConnect: true, retryStrategy: () => null })
  redis.on('error', () => {})
  return redis
}

export async function answers(at = url): Promise<boolean> {
  const redis = connect(at)
  try {
    return (await redis.ping()) === 'PONG'
  } catch {
    return false
  } finally {
    redis.disconnect()
  }
}

export function newPrefix(): string {
  return `writefence-test-${randomUUID()}`
}

/** Deletes all keys of a prefix. */
export async function clear(redis: Redis, prefix: string): Promise<void> {
  for await (const keys of redis.scanStream({ match: `{${prefix}}*`, count: 1000 })) {
    if (keys.length > 0) await redis.unlink(...(keys as string[]))
  }
}

/** Whether a missing server is a failure, and not only less that was tested. */
export const isRequired = process.env.CI === 'true' || process.env.REQUIRE_ENGINES === '1'
