/** PostgreSQL: whether the fence row is updated in place, and what an old snapshot does to it. */

import type pg from 'pg'
import { WriteGuard } from 'writefence'
import { PostgresFenceStore } from 'writefence/postgres'
import { anAccount, Jobs, newOperation } from './jobs.ts'
import { load, median, Samples } from './load.ts'
import type { Options } from './options.ts'
import { credit, PostgresSite } from './postgres-site.ts'
import { figure, table } from './report.ts'

const FILLFACTORS = [100, 90, 80, 50]

/** In place means: heap-only, no index is touched, and the page is cleaned up as it is read. */
export async function measureUpdates(options: Options): Promise<string> {
  const [fences, writes] = options.short ? [100, 200] : [2000, 10_000]
  const rows: string[][] = []
  for (const factor of FILLFACTORS) {
    for (const jobs of [fences, 1]) {
      const site = await PostgresSite.open()
      try {
        await site.pool.query(`ALTER TABLE writefence_fence SET (fillfactor = ${factor})`)
        await site.fillFences(0, fences)
        await site.tidy()
        const before = await tableBytes(site)
        const perSecond = await writeTo(site, new Jobs(jobs), writes)
        const { updated, inPlace } = await updatesOf(site)
        const after = await tableBytes(site)
        const each = `${figure((100 * inPlace) / updated)} %`
        rows.push([String(factor), String(jobs), each, figure(after / before), figure(perSecond)])
      } finally {
        await site.close()
      }
    }
  }
  const head = ['fillfactor', 'jobs', 'updated in place', 'the table grew to', 'writes/s']
  return `${table(head, rows)}\n\n${await measureSnapshot(options)}`
}

/** With a pool that is ended, since a backend tells what it counted when it goes. */
async function writeTo(site: PostgresSite, jobs: Jobs, writes: number): Promise<number> {
  const pool = site.connect(16)
  const guard = new WriteGuard(new PostgresFenceStore(pool))
  let left = writes
  const samples = new Samples()
  const loop = async () => {
    while (left-- > 0) {
      const intent = { token: jobs.any(), operationId: newOperation() }
      await samples.time(() => guard.write(intent, (tx) => credit(tx, anAccount())))
    }
  }
  await Promise.all(Array.from({ length: 16 }, loop))
  const { perSecond } = samples.summary()
  await pool.end()
  return perSecond
}

async function updatesOf(site: PostgresSite): Promise<{ updated: number; inPlace: number }> {
  const { rows } = await site.pool.query<{ updated: string; in_place: string }>(
    `SELECT n_tup_upd AS updated, n_tup_hot_upd AS in_place FROM pg_stat_user_tables
     WHERE relid = 'writefence_fence'::regclass`,
  )
  return { updated: Number(rows[0]?.updated), inPlace: Number(rows[0]?.in_place) }
}

async function tableBytes(site: PostgresSite): Promise<number> {
  const { rows } = await site.pool.query<{ bytes: string }>(
    "SELECT pg_relation_size('writefence_fence') AS bytes",
  )
  return Number(rows[0]?.bytes)
}

/** One job, while a transaction elsewhere may still look at how it was before. */
async function measureSnapshot(options: Options): Promise<string> {
  const writes = options.short ? 100 : 3000
  const site = await PostgresSite.open()
  try {
    await site.fillFences(0, 1000)
    await site.tidy()
    const job = new Jobs(1)
    const write = () => site.write(job.any(), newOperation(), anAccount())
    await load(1, options.ms, write)
    const before = await typicalMs(100, write)
    const reader = await site.pool.connect()
    await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await reader.query('SELECT count(*) FROM writefence_fence')
    for (let i = 0; i < writes; i += 1) await write()
    const during = await typicalMs(100, write)
    await endOf(reader)
    const after = await typicalMs(100, write)
    const head = ['one write to one job', 'ms']
    const told = `after ${writes} writes under a snapshot that is held`
    return table(head, [
      ['no snapshot is held', figure(before)],
      [told, figure(during)],
      ['the snapshot has ended', figure(after)],
    ])
  } finally {
    await site.close()
  }
}

async function typicalMs(count: number, call: () => Promise<unknown>): Promise<number> {
  const took: number[] = []
  for (let i = 0; i < count; i += 1) {
    const samples = new Samples()
    await samples.time(call)
    took.push(samples.summary().p50)
  }
  return median(took)
}

async function endOf(reader: pg.PoolClient): Promise<void> {
  await reader.query('COMMIT')
  reader.release()
}
