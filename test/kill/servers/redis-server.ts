/** A Redis of the run's own, which is killed. */

import { mkdirSync } from 'node:fs'
import { Redis } from 'ioredis'
import { RedisFenceStore, RedisLeaseStore } from '../../../src/storage/redis/index.ts'
import { freePort } from '../../support/free-port.ts'
import type { Effect } from '../engines/bank.ts'
import { EFFECTS } from '../engines/redis.ts'
import { type Ground, type Server, tracesOf } from './server.ts'
import { oneOf, ServerProcess } from './server-process.ts'

export async function redisServer({ outside, random, fault }: Ground): Promise<Server> {
  const folder = `${outside}/redis`
  mkdirSync(folder)
  const port = await freePort()
  const where = `redis://127.0.0.1:${port}`
  const log = fault === 'no-log' ? 'no' : 'yes'
  const place = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '']
  const admin = new Redis(where, { maxRetriesPerRequest: 0, retryStrategy: () => 50 })
  admin.on('error', () => {})
  const server = new ServerProcess({
    file: 'redis-server',
    args: [...place, '--appendonly', log, '--appendfsync', 'always'],
    // Its clock is not stepped: its allocator and libfaketime wait for each other.
    options: {},
    ask: () => admin.ping(),
  })
  await server.untilUp()
  for (const store of [new RedisFenceStore(admin), new RedisLeaseStore(admin)]) {
    await store.createSchema()
    await store.close()
  }
  return {
    engine: 'redis',
    where,
    harms: [
      { kind: 'kill', run: () => server.crash() },
      { kind: 'cut', run: () => cutOne(admin, random) },
    ],
    async effects() {
      const all = await admin.lrange(EFFECTS, 0, -1)
      return tracesOf(all.map((text) => JSON.parse(text) as Effect))
    },
    async close() {
      admin.disconnect()
      await server.end()
    },
  }
}

async function cutOne(admin: Redis, random: () => number): Promise<boolean> {
  const list = String(await admin.client('LIST').catch(() => ''))
  const own = String(await admin.client('ID').catch(() => ''))
  const ids = [...list.matchAll(/^id=(\d+) /gm)].map(([, id]) => id)
  const id = oneOf(
    ids.filter((each) => each !== own),
    random,
  )
  if (id === undefined) return false
  await admin.client('KILL', 'ID', Number(id)).catch(() => {})
  return true
}
