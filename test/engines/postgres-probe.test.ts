import type { PoolClient } from 'pg'
import { expect, it } from 'vitest'
import { WriteGuard } from 'writefence'
import { type Credit, missingOf } from '../probe/express-destination.ts'
import { describeEngine } from './engine.ts'
import { PostgresBench } from './postgres-bench.ts'

const bench = await PostgresBench.open('probe')

async function credited(tx: Pick<PoolClient, 'query'>, { jobId, operationId }: Credit) {
  const table = `${bench.schema}.credits`
  await tx.query(`INSERT INTO ${table} (job, operation) VALUES ($1, $2)`, [jobId, operationId])
  const count = `SELECT count(*)::integer AS number FROM ${table} WHERE job = $1`
  return { number: (await tx.query<{ number: number }>(count, [jobId])).rows[0]?.number ?? 0 }
}

async function open() {
  const pool = bench.connect()
  const store = bench.fences({ pool })
  return {
    guard: new WriteGuard(store),
    within: (credit: Credit) => (tx: PoolClient) => credited(tx, credit),
    unaware: (credit: Credit) => credited(bench.pool, credit),
    close: () => store.close(),
  }
}

async function effects(jobId: string): Promise<string[]> {
  const { rows } = await bench.pool.query<{ operation: string }>(
    'SELECT operation FROM credits WHERE job = $1 ORDER BY id',
    [jobId],
  )
  return rows.map(({ operation }) => operation)
}

describeEngine('a destination on Express over PostgreSQL', bench.problem, () => {
  it.each(['write', 'handler'] as const)(
    "has every property with protect: '%s'",
    async (protect) => {
      await bench.pool.query(
        'CREATE TABLE IF NOT EXISTS credits (id serial PRIMARY KEY, job text, operation text)',
      )
      expect(await missingOf({ open, effects, fencing: { protect } })).toEqual([])
    },
    120_000,
  )
})
