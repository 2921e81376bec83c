/** Worlds on a real Redis, under prefixes of this process's own. */

import { Redis } from 'ioredis'
import { RedisFenceStore, RedisLeaseStore, type RedisTransaction } from 'writefence/redis'
import { redisUrl } from '../../support/servers.ts'
import {
  type Databases,
  type DestinationDatabase,
  type EffectRow,
  effectOf,
  type FoundEffect,
  type LeaseDatabase,
  type Observed,
  PATIENT_MS,
  Processes,
  type Store,
} from '../databases.ts'

export async function openRedisDatabases(names: readonly string[]): Promise<Databases> {
  const redis = new Redis(redisUrl, { lazyConnect: true, retryStrategy: () => null })
  redis.on('error', () => {})
  await redis.connect()
  const leases = new RedisLeases(redis)
  const destinations = new Map(names.map((name) => [name, new RedisDestination(redis, name)]))
  const all = [leases, ...destinations.values()]
  await Promise.all(all.map((database) => database.open()))
  const end = async () => {
    await Promise.all(all.map((database) => database.end()))
    redis.disconnect()
  }
  return { leases, destinations, end }
}

function prefixOf(name: string): string {
  return `writefence-simulation-${process.pid}-${name}`
}

class RedisLeases implements LeaseDatabase {
  readonly store: RedisLeaseStore
  readonly #redis: Redis
  readonly #prefix = prefixOf('leases')
  now: () => number = () => 0

  constructor(redis: Redis) {
    this.#redis = redis
    const now = () => this.now()
    const options = { now, prefix: this.#prefix, timeoutMs: PATIENT_MS }
    this.store = new RedisLeaseStore(redis, options)
  }

  async open(): Promise<void> {
    await this.store.createSchema()
    await this.clear()
  }

  async clear(): Promise<void> {
    const rows = (await this.#ids()).map((id) => this.#row(id))
    await this.#redis.unlink(this.#key('leases'), this.#key('ended'), ...rows)
  }

  /** The index of what has ended follows from the rows. */
  async save(): Promise<string> {
    const ids = await this.#ids()
    const texts = ids.length === 0 ? [] : await this.#redis.mget(ids.map((id) => this.#row(id)))
    return JSON.stringify(ids.map((id, i) => [id, texts[i]]))
  }

  async load(saved: string): Promise<void> {
    await this.clear()
    for (const [id, text] of JSON.parse(saved) as [string, string][]) {
      const { endedAt } = JSON.parse(text) as { endedAt?: number }
      await this.#redis.set(this.#row(id), text)
      await this.#redis.zadd(this.#key('leases'), 0, id)
      if (endedAt !== undefined) await this.#redis.zadd(this.#key('ended'), endedAt, id)
    }
  }

  async end(): Promise<void> {
    await this.clear()
    await this.#redis.unlink(this.#key('schema:lease'))
    await this.store.close()
  }

  /** Nothing is pruned in worlds: every row is listed. */
  #ids(): Promise<string[]> {
    return this.#redis.zrange(this.#key('leases'), '0', '-1')
  }

  #row(id: string): string {
    return this.#key(`lease:${id}`)
  }

  #key(name: string): string {
    return `{${this.#prefix}}:${name}`
  }
}

class RedisDestination implements DestinationDatabase {
  readonly #redis: Redis
  readonly #prefix: string
  readonly #processes: Processes
  /** As its keys have them: nothing lists the fences at the server. */
  readonly #jobs = new Set<string>()
  now: () => number = () => 0

  constructor(redis: Redis, name: string) {
    this.#redis = redis
    this.#prefix = prefixOf(name)
    const now = () => this.now()
    const options = { now, prefix: this.#prefix, timeoutMs: PATIENT_MS }
    this.#processes = new Processes(() =>
      noting(this.#jobs, new RedisFenceStore(redis, options) as Store),
    )
  }

  get store(): Store {
    return this.#processes.store
  }

  async open(): Promise<void> {
    const options = { prefix: this.#prefix, timeoutMs: PATIENT_MS }
    const store = new RedisFenceStore(this.#redis, options)
    await store.createSchema()
    await store.close()
    await this.clear()
  }

  async clear(): Promise<void> {
    this.#processes.rewind()
    const kinds = ['fence', 'in-flight', 'unknown', 'applied']
    const ofJobs = [...this.#jobs].flatMap((job) => kinds.map((kind) => `${kind}:${job}`))
    const names = ['unsettled', 'applied', 'log', ...ofJobs]
    await this.#redis.unlink(...names.map((name) => this.#key(name)))
  }

  reopen(): void {
    this.#processes.next()
  }

  write(tx: unknown, effect: EffectRow): void {
    const { scope, jobId, generation, leaseId = null, operationId = null, call } = effect
    const text = JSON.stringify({ scope, jobId, generation, leaseId, operationId, call })
    ;(tx as RedisTransaction).call('RPUSH', this.#key('log'), text)
  }

  async observe(after: number): Promise<Observed> {
    const jobs = [...this.#jobs].sort()
    const [texts, ...generations] = await this.#ask([
      ['lrange', this.#key('log'), after, -1],
      ...jobs.map((job) => ['hget', this.#key(`fence:${job}`), 'generation']),
    ])
    const effects = (texts as string[]).map((text, i) =>
      effectOf({ seq: after + i + 1, ...(JSON.parse(text) as Omit<FoundEffect, 'seq'>) }),
    )
    const fences = jobs.flatMap((job, i) => {
      const [scope = '', jobId = ''] = JSON.parse(job) as string[]
      const generation = generations[i]
      return generation === null ? [] : [{ scope, jobId, generation: Number(generation) }]
    })
    return { effects, fences }
  }

  /** Without the versions: they tell how often a job has changed, on which nothing depends. */
  async digest(): Promise<string> {
    const jobs = [...this.#jobs].sort()
    const kinds = ['fence', 'in-flight', 'unknown', 'applied']
    const keys = jobs.flatMap((job) => kinds.map((kind) => this.#key(`${kind}:${job}`)))
    const [log, applied, ...hashes] = await this.#ask([
      ['lrange', this.#key('log'), 0, -1],
      ['zrange', this.#key('applied'), 0, -1, 'WITHSCORES'],
      ...keys.map((key) => ['hgetall', key]),
    ])
    const rows = hashes.map((hash, i) => {
      const { version: _, ...fields } = hash as Record<string, string>
      return [keys[i], Object.entries(fields).sort()]
    })
    return JSON.stringify([log, applied, rows])
  }

  async end(): Promise<void> {
    await this.clear()
    await this.#redis.unlink(this.#key('schema:fence'))
    await this.#processes.close()
  }

  /** All of them in one message. */
  async #ask(commands: (string | number)[][]): Promise<unknown[]> {
    const answers = (await this.#redis.pipeline(commands).exec()) ?? []
    return answers.map(([error, answer]) => {
      if (error !== null) throw error
      return answer
    })
  }

  #key(name: string): string {
    return `{${this.#prefix}}:${name}`
  }
}

/** The store, which writes down the jobs that it is asked about. */
function noting(jobs: Set<string>, store: Store): Store {
  return {
    mode: store.mode,
    transact(unit) {
      jobs.add(JSON.stringify([unit.job.scope, unit.job.jobId]))
      return store.transact(unit)
    },
    within: (tx, unit) => store.within(tx, unit),
    view: (job, operationId) => store.view(job, operationId),
    list: (query) => store.list(query),
    prune: (request) => store.prune(request),
    close: () => store.close(),
  }
}
