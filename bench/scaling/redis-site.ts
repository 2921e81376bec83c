/** A server of its own: what is measured is its memory, and a disk that every commit waits for. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { type FencingToken, type LeaseStore, WriteGuard } from 'writefence'
import { RedisFenceStore, RedisLeaseStore, type RedisTransaction } from 'writefence/redis'
import {
  type Bytes,
  FINGERPRINT,
  GENERATION,
  HOUR_MS,
  OWNER,
  PATIENT_MS,
  pieces,
  type Site,
} from './site.ts'

const PIECE = 10_000
const ACCOUNT = '{writefence}:account:'
const OPTIONS = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', '']

// ARGV: from, to; what is stored is as docs/engines/redis.md has it.
const LOOP = `local time = redis.call('TIME')
local clock = time[1] * 1000 + math.floor(time[2] / 1000)
for i = ARGV[1], ARGV[2] - 1 do
  local job = string.format('import-%08d', i % (ARGV[3] or 1e15))
`
const FENCES = `${LOOP}
  redis.call('HSET', '{writefence}:fence:["","' .. job .. '"]',
    'version', string.format('00000000-0000-4000-8000-%012x', i), 'generation', '${GENERATION}',
    'holder', 'lease', 'lease', string.format('%032x', i), 'sealed', '0')
end`
const LEASES = `${LOOP}
  redis.call('SET', '{writefence}:lease:' .. job, '{"status":"released","jobId":"' .. job ..
    '","generation":${GENERATION},"owner":"${OWNER}","leaseId":"' .. string.format('%032x', i) ..
    '","endedBy":"holder","endedAt":' .. string.format('%.0f', clock) .. '}')
  redis.call('ZADD', '{writefence}:leases', 0, job)
  redis.call('ZADD', '{writefence}:ended', string.format('%.0f', clock), job)
end`
const RECORDS = `${LOOP}
  local key, operation = '["","' .. job .. '"]', string.format('credit-%010d', i)
  redis.call('HSET', '{writefence}:applied:' .. key, operation,
    '{"generation":${GENERATION},"fingerprint":"${FINGERPRINT}"}')
  redis.call('ZADD', '{writefence}:applied', string.format('%.0f', clock - ${HOUR_MS}),
    key .. '\\n' .. operation)
end`

export class RedisSite implements Site {
  readonly engine = 'redis'
  readonly about: string
  readonly redis: Redis
  readonly guard: WriteGuard<RedisTransaction, 'async'>
  readonly leases: LeaseStore
  readonly #server: ChildProcess
  readonly #folder: string
  #bytes = { fences: 0, records: 0, leases: 0 }

  private constructor(redis: Redis, server: ChildProcess, folder: string, version: string) {
    this.redis = redis
    this.#server = server
    this.#folder = folder
    this.about = `Redis ${version}, appendonly yes, appendfsync always`
    this.guard = new WriteGuard(new RedisFenceStore(redis, { timeoutMs: PATIENT_MS }))
    this.leases = new RedisLeaseStore(redis, { timeoutMs: PATIENT_MS })
  }

  static async open(): Promise<RedisSite> {
    const folder = mkdtempSync(join(tmpdir(), 'writefence-scaling-'))
    const path = join(folder, 'redis.sock')
    const where = ['--port', '0', '--unixsocket', path, '--dir', folder, '--logfile', 'log']
    const server = spawn('redis-server', [...where, ...OPTIONS], { stdio: 'ignore' })
    await once(server, 'spawn')
    const redis = new Redis(path, { retryStrategy: () => 20, maxRetriesPerRequest: 200 })
    redis.on('error', () => {})
    const version = /redis_version:(\S+)/.exec(await redis.info('server'))?.[1] ?? ''
    await new RedisFenceStore(redis).createSchema()
    await new RedisLeaseStore(redis).createSchema()
    return new RedisSite(redis, server, folder, version)
  }

  plain(account: number): Promise<unknown> {
    return this.redis.incrby(`${ACCOUNT}${account}`, 1)
  }

  write(token: FencingToken, operationId: string, account: number): Promise<unknown> {
    const intent = { token, operationId, fingerprint: FINGERPRINT }
    return this.guard.write(intent, (tx) => tx.call('INCRBY', `${ACCOUNT}${account}`, 1))
  }

  async fillFences(from: number, to: number): Promise<void> {
    await this.#fill('fences', FENCES, from, to)
  }

  async fillLeases(from: number, to: number): Promise<void> {
    await this.#fill('leases', LEASES, from, to)
  }

  async fillRecords(from: number, to: number, jobs: number): Promise<void> {
    await this.#fill('records', RECORDS, from, to, jobs)
  }

  /** Nothing that the server puts off: it frees and rehashes as it goes. */
  async tidy(): Promise<void> {
    await setTimeout(100)
  }

  async bytes(): Promise<Bytes> {
    return this.#bytes
  }

  async close(): Promise<void> {
    this.redis.disconnect()
    const gone = once(this.#server, 'exit')
    this.#server.kill('SIGKILL')
    await gone
    rmSync(this.#folder, { recursive: true })
  }

  async #fill(kind: keyof Bytes, script: string, from: number, to: number, jobs?: number) {
    const before = await this.#used()
    for (const [start, end] of pieces(from, to, PIECE)) {
      await this.redis.eval(script, 0, start, end, ...(jobs === undefined ? [] : [jobs]))
    }
    this.#bytes = { ...this.#bytes, [kind]: this.#bytes[kind] + (await this.#used()) - before }
  }

  async #used(): Promise<number> {
    return Number(/used_memory:(\d+)/.exec(await this.redis.info('memory'))?.[1])
  }
}
