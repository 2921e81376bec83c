/** What is filled in bulk has to be what the stores write: or else other tables are measured. */

import { afterAll, expect, it } from 'vitest'
import { MysqlSite } from '../../bench/scaling/mysql-site.ts'
import { openSite } from '../../bench/scaling/open-site.ts'
import { PostgresSite } from '../../bench/scaling/postgres-site.ts'
import { RedisSite } from '../../bench/scaling/redis-site.ts'
import {
  ENGINES,
  GENERATION,
  jobOf,
  leaseOf,
  OWNER,
  operationOf,
  type Site,
} from '../../bench/scaling/site.ts'
import { SqliteSite } from '../../bench/scaling/sqlite-site.ts'
import { describeEngine, problemOf } from '../engines/engine.ts'

const JOBS = 3
const RECORDS = 6
const TABLES = ['fence', 'lease', 'operation'].map((name) => `writefence_${name}`)
const tokenOf = (job: number) => ({
  jobId: jobOf(job),
  generation: GENERATION,
  leaseId: leaseOf(job),
})

async function fillInBulk(site: Site): Promise<void> {
  // In two pieces, so that the seam between them is looked at.
  for (const [from, to] of [
    [0, 1],
    [1, JOBS],
  ] as const) {
    await site.fillFences(from, to)
    await site.fillLeases(from, to)
  }
  await site.fillRecords(0, RECORDS, JOBS)
  await site.tidy()
}

async function fillByTheStores(site: Site): Promise<void> {
  for (let job = 0; job < JOBS; job += 1) {
    const jobId = jobOf(job)
    await site.guard.advance(tokenOf(job))
    await site.leases.raise(jobId, GENERATION - 1)
    const claim = { jobId, owner: OWNER, ttlMs: 60_000, leaseId: leaseOf(job) }
    const claimed = await site.leases.claim(claim)
    if (claimed.status !== 'claimed') throw new Error(`the job is ${claimed.status}`)
    await site.leases.release(claimed.lease)
  }
  for (let record = 0; record < RECORDS; record += 1) {
    await site.write(tokenOf(record % JOBS), operationOf(record), record)
  }
}

/** Every row of the stores, without what is another one each time. */
async function rowsOf(site: Site): Promise<unknown[]> {
  return (await rawRowsOf(site)).map((row) => JSON.parse(JSON.stringify(row), masked))
}

const ANOTHER_EACH_TIME = ['applied_at', 'ended_at', 'endedAt', 'score', 'version', 'revision']

function masked(key: string, value: unknown): unknown {
  if (value === null || !ANOTHER_EACH_TIME.includes(key)) return value
  return `of ${String(value).length} characters`
}

async function rawRowsOf(site: Site): Promise<unknown[]> {
  if (site instanceof SqliteSite) {
    return TABLES.flatMap((table) =>
      site.db.prepare(`SELECT * FROM ${table} ORDER BY 1, 2, 3`).all(),
    )
  }
  if (site instanceof PostgresSite) {
    const found = TABLES.map((table) => site.pool.query(`SELECT * FROM ${table} ORDER BY 1, 2, 3`))
    return (await Promise.all(found)).flatMap(({ rows }) => rows as unknown[])
  }
  if (site instanceof MysqlSite) {
    const found = TABLES.map((table) => site.pool.query(`SELECT * FROM ${table} ORDER BY 1, 2, 3`))
    return (await Promise.all(found)).flatMap(([rows]) => rows as unknown[])
  }
  return site instanceof RedisSite ? redisRows(site) : expect.fail('an engine that is not known')
}

/** What the effects leave is not the stores', and equal scores stand in no order that counts. */
async function redisRows({ redis }: RedisSite): Promise<unknown[]> {
  const keys = (await redis.keys('{writefence}:*')).filter((key) => !key.includes(':account:'))
  return Promise.all(
    keys.sort().map(async (key) => {
      const type = await redis.type(key)
      if (type === 'string') return { key, value: parsed((await redis.get(key)) ?? '') }
      if (type === 'hash') {
        const entries = Object.entries(await redis.hgetall(key))
        return { key, ...Object.fromEntries(entries.map(([name, text]) => [name, parsed(text)])) }
      }
      const members = (await redis.zrange(key, '0', '-1')).sort()
      const scored = members.map(async (member) => [
        member,
        { score: await redis.zscore(key, member) },
      ])
      return { key, members: await Promise.all(scored) }
    }),
  )
}

function parsed(text: string): unknown {
  return text.startsWith('{') ? JSON.parse(text) : text
}

const open: Site[] = []
afterAll(async () => {
  for (const site of open) await site.close()
})

for (const engine of ENGINES) {
  const problem = await problemOf(async () => (await openSite(engine)).close())
  describeEngine(`the fill of the bench, on ${engine}`, problem, () => {
    it('is row for row what the stores would have written', async () => {
      const rows: unknown[][] = []
      for (const fill of [fillInBulk, fillByTheStores]) {
        const site = await openSite(engine)
        open.push(site)
        await fill(site)
        rows.push(await rowsOf(site))
        await open.pop()?.close()
      }
      const [inBulk = [], byTheStores = []] = rows
      expect(inBulk).toEqual(byTheStores)
      expect(inBulk.length).toBeGreaterThanOrEqual(2 * JOBS + JOBS)
    })

    it('is known to the guard: a record is replayed, an older token is stale', async () => {
      const site = await openSite(engine)
      open.push(site)
      await fillInBulk(site)
      expect(await site.write(tokenOf(1), operationOf(1), 1)).toMatchObject({ status: 'replayed' })
      expect(await site.write(tokenOf(1), operationOf(99), 1)).toMatchObject({ status: 'applied' })
      const older = { ...tokenOf(2), generation: GENERATION - 1 }
      await expect(site.guard.advance(older)).rejects.toMatchObject({ code: 'stale' })
      expect(await site.guard.prune({ olderThanMs: 60_000, limit: 100 })).toEqual({
        pruned: RECORDS,
      })
      expect(await site.leases.get(jobOf(2))).toMatchObject({
        status: 'released',
        generation: GENERATION,
      })
      await open.pop()?.close()
    })
  })
}
