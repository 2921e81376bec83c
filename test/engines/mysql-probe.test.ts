import type { PoolConnection } from 'mysql2/promise'
import { expect, it } from 'vitest'
import { WriteGuard } from 'writefence'
import { type Credit, missingOf } from '../probe/express-destination.ts'
import { describeEngine } from './engine.ts'
import { MysqlBench } from './mysql-bench.ts'

const bench = await MysqlBench.open('probe')

async function credited(tx: Pick<PoolConnection, 'query'>, { jobId, operationId }: Credit) {
  await tx.query('INSERT INTO credits (job, operation) VALUES (?, ?)', [jobId, operationId])
  const [rows] = await tx.query('SELECT count(*) AS number FROM credits WHERE job = ?', [jobId])
  return { number: (rows as { number: number }[])[0]?.number ?? 0 }
}

async function open() {
  const store = bench.fences()
  return {
    guard: new WriteGuard(store),
    within: (credit: Credit) => (tx: PoolConnection) => credited(tx, credit),
    unaware: (credit: Credit) => credited(bench.pool, credit),
    close: () => store.close(),
  }
}

async function effects(jobId: string): Promise<string[]> {
  const sql = 'SELECT operation FROM credits WHERE job = ? ORDER BY id'
  const [rows] = await bench.pool.query(sql, [jobId])
  return (rows as { operation: string }[]).map(({ operation }) => operation)
}

describeEngine('a destination on Express over MariaDB', bench.problem, () => {
  it.each(['write', 'handler'] as const)(
    "has every property with protect: '%s'",
    async (protect) => {
      await bench.pool.query(
        `CREATE TABLE IF NOT EXISTS credits (
          id BIGINT AUTO_INCREMENT PRIMARY KEY, job VARCHAR(255), operation VARCHAR(255))`,
      )
      expect(await missingOf({ open, effects, fencing: { protect } })).toEqual([])
    },
    120_000,
  )
})
