/**
 * PostgreSQL: whether rows are updated in place (heap-only: no index is touched, and the page is
 * cleaned up as it is read), and what an update leaves behind.
 */

import { setTimeout } from 'node:timers/promises'
import type pg from 'pg'
import { type Lease, WriteGuard } from 'writefence'
import { PostgresFenceStore, PostgresLeaseStore } from 'writefence/postgres'
import { anAccount, Jobs, newOperation } from './jobs.ts'
import type { Options } from './options.ts'
import { credit, PostgresSite } from './postgres-site.ts'
import { figure, table } from './report.ts'
import { FINGERPRINT, jobOf, OWNER } from './site.ts'

const IN_FLIGHT = 16
const FILLFACTORS = [100, 90, 80, 50]

/** Of the fence row: by the room that a page is left with, and by how many jobs are written to. */
export async function measureFenceUpdates(options: Options): Promise<string> {
  const [fences, writes] = options.short ? [100, 200] : [2000, 4000]
  const rows: string[][] = []
  for (const factor of FILLFACTORS) {
    for (const jobs of [fences, 1]) {
      const cells = await withSite(async (site) => {
        await site.pool.query(`ALTER TABLE writefence_fence SET (fillfactor = ${factor})`)
        await site.fillFences(0, fences)
        await site.tidy()
        const before = await bytesOf(site, 'writefence_fence')
        await withPool(site, (pool) => writeTo(pool, new Jobs(jobs), writes))
        const grown = (await bytesOf(site, 'writefence_fence')) / before
        return [await inPlace(site, 'writefence_fence', writes), figure(grown)]
      })
      rows.push([String(factor), String(jobs), ...cells])
    }
  }
  return table(['fillfactor', 'jobs', 'updated in place', 'the table grew to'], rows)
}

/** Of the lease row, by verb: an index has the status and the owner. */
export async function measureLeaseUpdates(options: Options): Promise<string> {
  const jobs = options.short ? 20 : 500
  const verbs = ['claim', 'renew', 'release'] as const
  const rows = await withSite(async (site) => {
    await site.fillLeases(0, jobs)
    await site.tidy()
    const leases: Lease[] = []
    const cells: string[][] = []
    for (const verb of verbs) {
      const before = await updatesOf(site, 'writefence_lease')
      await withPool(site, async (pool) => {
        const store = new PostgresLeaseStore(pool)
        for (let job = 0; job < jobs; job += 1) {
          if (verb === 'claim') leases.push(await claim(store, jobOf(job)))
          else await store[verb](leases[job] as Lease)
        }
      })
      cells.push([verb, await inPlace(site, 'writefence_lease', jobs, before)])
    }
    return cells
  })
  return table(['lease', 'updated in place'], rows)
}

async function claim(store: PostgresLeaseStore, jobId: string): Promise<Lease> {
  const claimed = await store.claim({ jobId, owner: OWNER, ttlMs: 60_000 })
  if (claimed.status !== 'claimed') throw new Error(`${jobId} is ${claimed.status}`)
  return claimed.lease
}

/** Of the record of an operation, as the guard writes it: the result is an update of its own. */
export async function measureRecordUpdates(options: Options): Promise<string> {
  const writes = options.short ? 200 : 5000
  const results = [undefined, 'x'.repeat(100)]
  const rows: string[][] = []
  for (const result of results) {
    const cells = await withSite(async (site) => {
      await site.fillFences(0, 1000)
      await withPool(site, (pool) => writeTo(pool, new Jobs(1000), writes, result))
      const bytes = await bytesOf(site, 'writefence_operation')
      await site.pool.query('VACUUM FULL writefence_operation')
      const least = await bytesOf(site, 'writefence_operation')
      return [`${Math.round(bytes / writes)} B`, `${Math.round(least / writes)} B`]
    })
    rows.push([result === undefined ? 'no result' : `${result.length} characters`, ...cells])
  }
  return table(['a record with', 'as it was written', 'without dead rows'], rows)
}

async function writeTo(pool: pg.Pool, jobs: Jobs, writes: number, result?: string) {
  const guard = new WriteGuard(new PostgresFenceStore(pool))
  let left = writes
  const loop = async () => {
    while (left-- > 0) {
      const intent = { token: jobs.any(), operationId: newOperation(), fingerprint: FINGERPRINT }
      await guard.write(intent, async (tx) => {
        await credit(tx, anAccount())
        return result
      })
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, loop))
}

async function withSite<T>(work: (site: PostgresSite) => Promise<T>): Promise<T> {
  const site = await PostgresSite.open()
  try {
    return await work(site)
  } finally {
    await site.close()
  }
}

/** Ended afterwards: a backend tells what it has counted when it goes. */
async function withPool(site: PostgresSite, work: (pool: pg.Pool) => Promise<void>) {
  const pool = site.connect(IN_FLIGHT)
  await work(pool)
  await pool.end()
}

interface Updates {
  readonly all: number
  readonly inPlace: number
}

async function updatesOf({ pool }: PostgresSite, relation: string): Promise<Updates> {
  const { rows } = await pool.query<{ all: string; in_place: string }>(
    `SELECT n_tup_upd AS all, n_tup_hot_upd AS in_place FROM pg_stat_user_tables
     WHERE relid = $1::regclass`,
    [relation],
  )
  return { all: Number(rows[0]?.all), inPlace: Number(rows[0]?.in_place) }
}

/** The share of so many updates, once all of them are counted. */
async function inPlace(
  site: PostgresSite,
  relation: string,
  updates: number,
  before: Updates = { all: 0, inPlace: 0 },
): Promise<string> {
  for (let tries = 0; tries < 100; tries += 1) {
    const after = await updatesOf(site, relation)
    const counted = after.all - before.all
    if (counted >= updates) return `${figure((100 * (after.inPlace - before.inPlace)) / counted)} %`
    await setTimeout(100)
  }
  throw new Error(`fewer than ${updates} updates of ${relation} were counted`)
}

async function bytesOf({ pool }: PostgresSite, relation: string): Promise<number> {
  const sql = 'SELECT pg_relation_size($1::regclass) AS bytes'
  const { rows } = await pool.query<{ bytes: string }>(sql, [relation])
  return Number(rows[0]?.bytes)
}
