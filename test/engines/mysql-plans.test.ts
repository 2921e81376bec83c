import type { Pool, PoolConnection } from 'mysql2/promise'
import { beforeAll, expect, it } from 'vitest'
import { WriteGuard } from 'writefence'
import { MysqlFenceStore, MysqlLeaseStore } from 'writefence/mysql'
import { describeEngine } from './engine.ts'
import { MysqlBench } from './mysql-bench.ts'

const bench = await MysqlBench.open('plans')
const now = () => 1_700_000_000_000
const sequence = (count: number) => `seq_1_to_${count}`

/** The statements that a call sends to the tables, as they can be explained. */
async function sentBy(call: (pool: Pool) => Promise<unknown>): Promise<string[]> {
  const sent: string[] = []
  const pool = bench.connect({ connectionLimit: 1 })
  const getConnection = async () => {
    const connection = await pool.getConnection()
    const query = connection.query.bind(connection)
    return Object.assign(connection, {
      query: (given: { sql: string }) => {
        if (given.sql.includes('writefence_'))
          sent.push(given.sql.replace(/^SET STATEMENT.*? FOR /, ''))
        return query(given)
      },
    })
  }
  await call({ getConnection } as unknown as Pool)
  return sent.filter((sql) => /^\(?(SELECT|INSERT|UPDATE|DELETE)/.test(sql) && !/_schema/.test(sql))
}

interface Step {
  readonly table: string | null
  readonly type: string | null
  readonly key: string | null
  readonly rows: number | null
}

async function explain(sql: string): Promise<Step[]> {
  const [steps] = await bench.pool.query(`EXPLAIN ${sql}`)
  return steps as Step[]
}

/** The steps of a plan that read many rows of a table to find few. */
const wasteful = (steps: readonly Step[]) =>
  steps.filter(({ type, rows }) => (type === 'ALL' || type === 'index') && Number(rows) > 100)

const token = { jobId: 'long job', generation: 8, leaseId: 'a' }
const scope = 'tenant 1'
const claim = { jobId: 'job 1', owner: 'w', ttlMs: 1000 }

type Guard = WriteGuard<PoolConnection, 'async'>
const guarded = (call: (guard: Guard) => Promise<unknown>) => (pool: Pool) =>
  call(new WriteGuard(new MysqlFenceStore(pool, { now })))
const leased = (call: (store: MysqlLeaseStore) => Promise<unknown>) => (pool: Pool) =>
  call(new MysqlLeaseStore(pool, { now }))

describeEngine('MariaDB, the plan of every statement', bench.problem, () => {
  beforeAll(async () => {
    await bench.pool.query(`
      INSERT INTO writefence_fence (scope, job_id, generation, holder, sealed, revision)
      SELECT CONCAT('tenant ', seq % 10), CONCAT('job ', seq), 7, 'none', seq % 100 = 0, 1
      FROM ${sequence(4000)}`)
    await bench.pool.query(`
      INSERT INTO writefence_operation (scope, job_id, operation_id, status, generation,
        attempt_id, deadline, applied_at)
      SELECT scope, job_id, CONCAT('operation ', seq), status, 7, IF(status = 'applied', NULL, 'a'),
        IF(status = 'in_flight', 1700000001000 - 2000 * (seq % 2), NULL),
        IF(status = 'applied', 1690000000000 + seq * 1000 + generation, NULL)
      FROM (SELECT *, ELT(1 + IF((seq + generation) % 11 = 0, seq % 3, 0),
          'applied', 'in_flight', 'unknown') AS status
        FROM writefence_fence JOIN ${sequence(10)}) AS t`)
    await bench.pool.query(`
      INSERT INTO writefence_operation (scope, job_id, operation_id, status, generation, applied_at)
      SELECT 'tenant 1', 'long job', CONCAT('operation ', seq), 'applied', 7, 1695000000000 + seq
      FROM ${sequence(20000)}`)
    await bench.pool.query(`
      INSERT INTO writefence_lease (job_id, generation, status, owner, lease_id, ttl, lease_until,
        ended_by, lapsed, ended_at, revision)
      SELECT CONCAT('job ', seq), 1, IF(live, 'leased', 'completed'), CONCAT('owner ', seq % 500),
        'lease', IF(live, 1000, NULL), IF(live, 1700000000000 + seq, NULL),
        IF(live, NULL, 'holder'), 0, IF(live, NULL, 1690000000000 + seq), 1
      FROM (SELECT seq, seq % 50 = 0 AS live FROM ${sequence(20000)}) AS t`)
    await bench.pool.query('ANALYZE TABLE writefence_fence, writefence_operation, writefence_lease')
  })

  it.each<[string, (pool: Pool) => Promise<unknown>, least: number]>([
    [
      'a write',
      guarded((guard) => guard.write({ token, scope, operationId: 'new' }, () => ({}))),
      5,
    ],
    ['an effect', guarded((guard) => guard.effect({ token, scope }, async () => {})), 6],
    ['an advance', guarded((guard) => guard.advance(token, scope)), 3],
    ['a judgement', guarded((guard) => guard.judge({ token, scope, operationId: 'x' })), 2],
    [
      'what is unsettled in a job',
      guarded((guard) => guard.unsettled({ scope, jobId: 'job 1' })),
      1,
    ],
    ['pruning', guarded((guard) => guard.prune({ olderThanMs: 9_999_995_000 })), 1],
    ['a claim', leased((store) => store.claim(claim)), 3],
    ['a raise', leased((store) => store.raise('job 2', 9)), 3],
    ['a look', leased((store) => store.get('job 1')), 1],
    ['leases by status', leased((store) => store.list({ status: 'leased', limit: 10 })), 1],
    ['leases of an owner', leased((store) => store.list({ owner: 'owner 7' })), 1],
    ['leases that ran out', leased((store) => store.list({ expired: true, after: 'job 5' })), 1],
    ['pruning leases', leased((store) => store.prune({ olderThanMs: 9_999_999_990 })), 1],
  ])('%s reads no table in full', async (_, call, least) => {
    const statements = await sentBy(call)
    expect(statements.length).toBeGreaterThanOrEqual(least)
    for (const sql of statements) expect(wasteful(await explain(sql)), sql).toEqual([])
  })

  it('all that is unsettled is found by its own index, among far more that is not', async () => {
    const [sql = ''] = await sentBy(guarded((guard) => guard.unsettled()))
    const [step] = await explain(sql)
    expect(step).toMatchObject({ key: 'unsettled' })
    expect(wasteful([step as Step])).toEqual([])
  })

  it('the operations in the way of a job are found without those that are applied', async () => {
    const statements = await sentBy(guarded((guard) => guard.advance(token, scope)))
    const reads = statements.filter((sql) => sql.includes('in_flight'))
    expect(reads.length).toBeGreaterThan(0)
    for (const sql of reads) {
      const keys = (await explain(sql)).map((step) => step.key)
      expect(keys, sql).toContain('unsettled')
    }
  })

  it('a plan that reads a table in full would be caught', async () => {
    const steps = await explain("SELECT * FROM writefence_fence WHERE holder = 'lease'")
    expect(wasteful(steps)).toHaveLength(1)
  })
})
