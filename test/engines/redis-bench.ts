/** A prefix of one's own on the Redis of the tests, and stores on it by both drivers. */

import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, afterEach } from 'vitest'
import {
  type RedisClient,
  RedisFenceStore,
  RedisLeaseStore,
  type RedisStoreOptions,
  type RedisTransaction,
} from 'writefence/redis'
import { redisUrl } from '../support/servers.ts'
import { problemOf } from './engine.ts'

export const drivers = ['ioredis', 'node-redis'] as const
export type Driver = (typeof drivers)[number]

/** A client as a user has it; the stores never send anything through it. */
export function clientOf(driver: Driver, url: string): RedisClient {
  return driver === 'ioredis' ? new Redis(url, { lazyConnect: true }) : createClient({ url })
}

interface BenchOptions extends RedisStoreOptions {
  readonly driver?: Driver
  readonly url?: string
}

export class RedisBench {
  readonly prefix = `writefence-test-${randomUUID()}`
  /** A connection of the test's own, beside those of the stores. */
  readonly redis: Redis
  readonly problem: unknown
  /** Where the server of the tests is. */
  readonly url: string
  readonly #ends: (() => unknown)[] = []

  private constructor(url: string, redis: Redis, problem: unknown) {
    this.url = url
    this.redis = redis
    this.problem = problem
    afterEach(async () => {
      for (const end of this.#ends.splice(0)) await end()
      if (redis.status === 'ready') await this.empty()
    })
    afterAll(() => redis.disconnect())
  }

  static async open(url = redisUrl): Promise<RedisBench> {
    const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null })
    redis.on('error', () => {})
    return new RedisBench(url, redis, await problemOf(() => redis.ping()))
  }

  get host(): { host: string; port: number } {
    const { hostname, port } = new URL(this.url)
    return { host: hostname, port: Number(port || 6379) }
  }

  client(driver: Driver = 'ioredis', url = this.url): RedisClient {
    return clientOf(driver, url)
  }

  /** A store that is set up, and closed after the test. */
  async fences({ driver, url, ...options }: BenchOptions = {}): Promise<RedisFenceStore> {
    const store = new RedisFenceStore(this.client(driver, url), { prefix: this.prefix, ...options })
    this.#ends.push(() => store.close())
    await store.createSchema()
    return store
  }

  async leases({ driver, url, ...options }: BenchOptions = {}): Promise<RedisLeaseStore> {
    const store = new RedisLeaseStore(this.client(driver, url), { prefix: this.prefix, ...options })
    this.#ends.push(() => store.close())
    await store.createSchema()
    return store
  }

  key(name: string): string {
    return `{${this.prefix}}${name}`
  }

  async append(tx: RedisTransaction, text: string): Promise<void> {
    tx.call('RPUSH', this.key('log'), text)
  }

  log(): Promise<string[]> {
    return this.redis.lrange(this.key('log'), 0, -1)
  }

  /** Deletes all keys of the prefix. */
  async empty(): Promise<void> {
    for await (const keys of this.redis.scanStream({ match: this.key('*'), count: 1000 })) {
      if (keys.length > 0) await this.redis.unlink(...(keys as string[]))
    }
  }
}
