/**
 * Tables that an operator has partitioned, to keep each part small: the same statements have to do
 * the same. What a ctid names is a row of one part.
 *
 * The order of events that was found: the record of `old` is the first row of one part, that of
 * `young` the first row of another one, so that both are at ctid (0,1). A prune that deletes by
 * ctid alone deletes both, and a retry of `young` takes place a second time.
 */

import { expect, it, onTestFinished } from 'vitest'
import { WriteGuard } from 'writefence'
import { migration, tablesIn } from '../../src/storage/postgres/postgres-schema.ts'
import { describeEngine } from './engine.ts'
import { PostgresBench } from './postgres-bench.ts'

const bench = await PostgresBench.open('partitioned')
const schema = `${bench.schema}_parts`
const PARTS = 4
const JOBS = Array.from({ length: 40 }, (_, i) => `job-${i}`)
const HOUR_MS = 3_600_000
const EVERY_OTHER = 'substring(job_id FROM 5)::integer % 2 = 0'

/** The tables of the migration script, in parts. */
async function createTables(): Promise<void> {
  const parts = (table: string, key: string) => [
    `PARTITION BY HASH (${key});`,
    ...Array.from(
      { length: PARTS },
      (_, part) => `CREATE TABLE ${table}_${part} PARTITION OF ${table}
        FOR VALUES WITH (MODULUS ${PARTS}, REMAINDER ${part});`,
    ),
  ]
  const script = migration(tablesIn(undefined))
    .replace(
      /(?<=CREATE TABLE writefence_operation [^;]+\));/,
      parts('writefence_operation', 'fence_id').join('\n'),
    )
    .replace(
      /(?<=CREATE TABLE writefence_lease [^;]+\)) WITH [^;]+;/,
      parts('writefence_lease', 'job_id').join('\n'),
    )
  await bench.pool.query(
    `CREATE SCHEMA ${schema}; SET search_path = ${schema}; ${script}; RESET search_path`,
  )
  onTestFinished(async () => void (await bench.pool.query(`DROP SCHEMA ${schema} CASCADE`)))
}

/** Rows that share their ctid with one of another part: without them nothing is shown. */
async function twins(table: string): Promise<number> {
  const { rows } = await bench.pool.query<{ twins: string }>(
    `SELECT count(*) AS twins FROM ${schema}.${table} AS a
     WHERE EXISTS (SELECT FROM ${schema}.${table} AS b
       WHERE b.ctid = a.ctid AND b.tableoid <> a.tableoid)`,
  )
  return Number(rows[0]?.twins)
}

describeEngine('PostgreSQL, tables in parts', bench.problem, () => {
  it('pruning deletes the records that are due, and no others', async () => {
    await createTables()
    const guard = new WriteGuard(bench.fences({ schema }))
    const write = (jobId: string) =>
      guard.write({ token: { jobId, generation: 1 }, operationId: 'op' }, () => {})
    for (const jobId of JOBS) await write(jobId)
    await bench.pool.query(
      `UPDATE ${schema}.writefence_operation SET applied_at = applied_at - ${HOUR_MS}
       WHERE fence_id IN (SELECT id FROM ${schema}.writefence_fence WHERE ${EVERY_OTHER})`,
    )
    expect(await twins('writefence_operation')).toBeGreaterThan(0)
    expect(await guard.prune({ olderThanMs: HOUR_MS / 2 })).toEqual({ pruned: JOBS.length / 2 })
    const again = await Promise.all(JOBS.map(async (jobId) => (await write(jobId)).status))
    expect(again).toEqual(JOBS.map((_, i) => (i % 2 === 0 ? 'applied' : 'replayed')))
  })

  it('pruning forgets the holders of leases that are due, and no others', async () => {
    await createTables()
    const leases = bench.leases({ schema })
    for (const jobId of JOBS) {
      const claimed = await leases.claim({ jobId, owner: 'worker', ttlMs: HOUR_MS })
      if (claimed.status === 'claimed') await leases.release(claimed.lease)
    }
    await bench.pool.query(
      `UPDATE ${schema}.writefence_lease SET ended_at = ended_at - ${HOUR_MS} WHERE ${EVERY_OTHER}`,
    )
    expect(await twins('writefence_lease')).toBeGreaterThan(0)
    expect(await leases.prune({ olderThanMs: HOUR_MS / 2 })).toEqual({ pruned: JOBS.length / 2 })
    expect((await leases.list()).map(({ jobId }) => jobId).sort()).toEqual(
      JOBS.filter((_, i) => i % 2 === 1).sort(),
    )
  })
})
