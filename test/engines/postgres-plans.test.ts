import { beforeAll, expect, it } from 'vitest'
import { fenceSql } from '../../src/storage/postgres/postgres-fence-statements.ts'
import { leaseSql } from '../../src/storage/postgres/postgres-lease-statements.ts'
import { tablesIn } from '../../src/storage/postgres/postgres-schema.ts'
import { describeEngine } from './engine.ts'
import { PostgresBench } from './postgres-bench.ts'

const bench = await PostgresBench.open('plans')
const fences = fenceSql(tablesIn(bench.schema))
const leases = leaseSql(tablesIn(bench.schema))

/** The tables that the plan of a statement reads from end to end. */
async function readInFull(sql: string, values: unknown[]): Promise<string[]> {
  const { rows } = await bench.pool.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${sql}`, values)
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
  return [...plan.matchAll(/Seq Scan on (\w+)/g)].map(([, table = '']) => table)
}

describeEngine('PostgreSQL, the plan of every statement', bench.problem, () => {
  beforeAll(async () => {
    await bench.pool.query(`
      INSERT INTO writefence_fence (scope, job_id, generation, holder, sealed)
        SELECT 'tenant ' || n % 10, 'job ' || n, 7, 'none', n % 100 = 0
        FROM generate_series(1, 4000) AS n;
      INSERT INTO writefence_operation
        (fence_id, operation_id, status, generation, attempt_id, deadline, applied_at)
        SELECT id, 'operation ' || n, status, 7,
          CASE status WHEN 'applied' THEN NULL ELSE 'attempt' END,
          CASE status WHEN 'in_flight' THEN 1700000000000 END,
          CASE status WHEN 'applied' THEN 1600000000000 + id * 1000 + n END
        FROM writefence_fence, generate_series(1, 10) AS n,
          LATERAL (SELECT (ARRAY['applied', 'in_flight', 'unknown'])
            [1 + CASE WHEN (id + n) % 200 = 0 THEN n % 3 ELSE 0 END] AS status) AS s;
      INSERT INTO writefence_lease (job_id, generation, status, owner, lease_id, ttl, lease_until,
          ended_by, lapsed, ended_at)
        SELECT 'job ' || n, 1, CASE WHEN live THEN 'leased' ELSE 'completed' END,
          'owner ' || n % 500, 'lease', CASE WHEN live THEN 1000 END,
          CASE WHEN live THEN 1700000000000 + n END, CASE WHEN NOT live THEN 'holder' END,
          false, CASE WHEN NOT live THEN 1600000000000 + n END
        FROM generate_series(1, 20000) AS n, LATERAL (SELECT n % 50 = 0 AS live) AS s;
      ANALYZE writefence_fence, writefence_operation, writefence_lease`)
  })

  const key = ['tenant 1', 'job 1']
  const now = 1_700_000_000_000
  it.each<[string, string, unknown[]]>([
    ['locking a job', fences.lock, key],
    ['reading a job', fences.view, [...key, 'operation 1', null]],
    ['reading a job without an operation', fences.view, [...key, null, null]],
    ['reading and counting a job', fences.viewAndCensus, [...key, null, now]],
    ['putting a fence', fences.putFence, [1, 8, 'none', null, false]],
    [
      'putting an operation',
      fences.putOperation,
      [1, 'new', 'applied', 8, null, null, null, null, null],
    ],
    ['recording a result', fences.setResult, [1, 'operation 1', '{}']],
    ['deleting an operation', fences.deleteOperation, [1, 'operation 1']],
    ['listing the operations of a job', fences.list, [...key, 100, null]],
    ['pruning', fences.prune, [1000, 1000, false, 1_600_000_500_000]],
    ['locking a lease', leases.lock, ['job 1']],
    ['reading a lease', leases.find, ['job 1', null]],
    [
      'putting a lease',
      leases.put,
      ['job 1', 2, 'released', null, null, null, null, 'holder', false, now],
    ],
    ['listing leases', leases.list, [null, null, null, null, 100, null]],
    ['listing the leases of an owner', leases.list, [null, 'owner 1', null, null, 100, null]],
    ['listing leases that have run out', leases.list, [null, null, true, 'job 5', 100, null]],
    ['listing by status', leases.list, ['leased', null, null, null, 100, null]],
    ['pruning leases', leases.prune, [1000, 1000, 1_600_000_005_000]],
  ])('%s reads no table in full', async (_, sql, values) => {
    expect(await readInFull(sql, values)).toEqual([])
  })

  it('listing what is unsettled goes by its own index, not by all operations', async () => {
    const sql = `EXPLAIN ${fences.list}`
    const { rows } = await bench.pool.query(sql, [null, null, 100, null])
    expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toMatch(/operation_unsettled/)
  })

  it('pruning the records of sealed jobs goes by the time that they were applied', async () => {
    const sql = `EXPLAIN ${fences.prune}`
    const { rows } = await bench.pool.query(sql, [0, 1000, true, now])
    expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toMatch(/operation_applied/)
  })

  it('a plan that reads a table in full would be caught', async () => {
    const sql = `SELECT FROM ${bench.schema}.writefence_fence WHERE holder = $1::text`
    expect(await readInFull(sql, ['lease'])).toEqual(['writefence_fence'])
  })
})
