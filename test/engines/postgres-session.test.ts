import { beforeEach, describe, expect, it } from 'vitest'
import { MAX_GENERATION, WriteGuard, type WriteIntent } from 'writefence'
import { start } from '../processes/spawn.ts'
import { describeEngine } from './engine.ts'
import { PostgresBench } from './postgres-bench.ts'

const bench = await PostgresBench.open('session')

const intent = (generation: number, operationId = 'x'): WriteIntent => ({
  token: { jobId: 'job', generation, leaseId: 'a' },
  operationId,
})

/** 255 code points beyond the basic plane, that compress badly. */
const longest = (seed: number) =>
  Array.from({ length: 255 }, (_, at) =>
    String.fromCodePoint(0x20000 + ((at * 7919 + seed * 104729) % 0xa000)),
  ).join('')

describeEngine('PostgreSQL, sessions and values', bench.problem, () => {
  beforeEach(() => bench.empty())

  it('nothing is left in a session, so that a transaction pooler may stand between', async () => {
    // What is set for one unit only must not outlast it, the durability of its commit neither.
    const pool = bench.connect({ max: 1, options: '-c synchronous_commit=off' })
    const left = `SELECT (SELECT count(*)::int FROM pg_prepared_statements) AS prepared,
      (SELECT count(*)::int FROM pg_cursors) AS cursors,
      (SELECT count(*)::int FROM pg_locks
        WHERE pid = pg_backend_pid() AND locktype = 'advisory') AS locks,
      (SELECT array_agg(name || '=' || setting ORDER BY name) FROM pg_settings
        WHERE source = 'session') AS settings,
      pg_my_temp_schema()::int AS temporary`
    const { rows: before } = await pool.query(left)
    const guard = new WriteGuard(bench.fences({ pool }))
    const store = bench.leases({ pool })
    await bench.fences({ pool }).createSchema()
    await guard.write(intent(2), (tx) => bench.append(tx, 'done'))
    await guard.write(intent(2, 'y'), (tx) => tx.query('SELECT 1/0')).catch(() => {})
    await guard.write(intent(1), () => 1).catch(() => {})
    await guard.effect(intent(2, 'z'), async () => 1)
    await guard.inspect('job')
    await guard.unsettled()
    await guard.prune({ olderThanMs: 0 })
    await store.claim({ jobId: 'job', owner: 'w', ttlMs: 1000 })
    await store.list()
    await store.prune({ olderThanMs: 0 })
    expect((await pool.query(left)).rows).toEqual(before)
  })

  it('a process stopped in its effect holds the job no longer than its time-out', async () => {
    const child = start('postgres-writer.ts', JSON.stringify(bench.address), bench.schema)
    expect(await child.line()).toBe('in the effect')
    const guard = new WriteGuard(bench.fences())
    const outcome = await guard.write(intent(2), (tx) => bench.append(tx, 'next'))
    expect(outcome).toMatchObject({ status: 'applied', highestGeneration: 2 })
    child.process.kill('SIGCONT')
    expect(JSON.parse(await child.line())).toMatchObject({ code: 'store_unavailable' })
    expect(await bench.log()).toEqual(['next'])
  })

  it('a statement of an effect that was given up ends at the server too', async () => {
    const pool = bench.connect({ application_name: bench.schema })
    const limits = { timeoutMs: 200, effectTimeoutMs: 200 }
    const guard = new WriteGuard(bench.fences({ pool, ...limits }))
    const began = performance.now()
    const slow = guard.write(intent(1), (tx) => tx.query('SELECT pg_sleep(15)'))
    await expect(slow).rejects.toThrow()
    await bench.untilGone()
    expect(performance.now() - began).toBeLessThan(12_000)
  })

  it('what changes nothing leaves nothing behind, not even an empty row', async () => {
    const guard = new WriteGuard(bench.fences())
    const operation = { jobId: 'job', operationId: 'x' }
    expect(await guard.resolve(operation, { status: 'not_applied' })).toEqual({
      status: 'unknown_operation',
    })
    const lease = { jobId: 'job', generation: 1, leaseId: 'a', owner: 'w', ttlMs: 1000 }
    expect(await bench.leases().renew(lease)).toEqual({ status: 'lost', reason: 'unknown_job' })
    const { rows } = await bench.pool.query(`SELECT FROM writefence_fence
      UNION ALL SELECT FROM writefence_lease`)
    expect(rows).toEqual([])
  })

  it('the oldest of the operations in the way is found wherever its row lies', async () => {
    let now = 1000
    const pool = bench.connect({ options: '-c enable_indexscan=off -c enable_bitmapscan=off' })
    const guard = new WriteGuard(bench.fences({ pool, now: () => now }))
    let end = () => {}
    const ends = new Promise<void>((resolve) => {
      end = resolve
    })
    const begin = (generation: number, operationId: string) =>
      new Promise<{ done: Promise<unknown> }>((resolve) => {
        const perform = () => {
          resolve({ done })
          return ends
        }
        const options = { deadlineMs: 10, afterOverdue: 'proceed' } as const
        const done = guard.effect(intent(generation, operationId), perform, options)
      })
    const older = await begin(1, 'older')
    now += 10
    const newer = await begin(2, 'newer')
    now += 10
    // Its new version comes after the row of the newer one.
    await bench.pool.query(`UPDATE writefence_operation SET fingerprint = fingerprint
      WHERE operation_id = 'older'`)
    const write = guard.write(intent(2, 'next'), (tx) => bench.append(tx, 'too early'))
    await expect(write).rejects.toMatchObject({ code: 'outcome_unknown' })
    end()
    await Promise.all([older.done, newer.done])
  })

  it('R127: pruning leases takes what ended first, not what lies first', async () => {
    let now = 2000
    const store = bench.leases({ now: () => now })
    await store.raise('ended second', 1)
    now = 1000
    await store.raise('ended first', 1)
    now = 3000
    expect(await store.prune({ olderThanMs: 0, limit: 1 })).toEqual({ pruned: 1 })
    expect((await store.list()).map((record) => record.jobId)).toEqual(['ended second'])
  })

  it('R46, R67: the longest ids there are fit, all three at once', async () => {
    const [scope, jobId, operationId, leaseId] = [longest(1), longest(2), longest(3), longest(4)]
    const guard = new WriteGuard(bench.fences())
    const write = { token: { jobId, generation: 1, leaseId }, scope, operationId }
    expect(await guard.write(write, () => 'done')).toMatchObject({ status: 'applied' })
    expect(await guard.write(write, () => 'done')).toMatchObject({ status: 'replayed' })
    await guard
      .effect({ ...write, operationId: longest(5) }, () => Promise.reject(new Error()))
      .catch(() => {})
    expect(await guard.unsettled()).toEqual([
      { scope, jobId, operationId: longest(5), generation: 1, status: 'unknown' },
    ])
    const store = bench.leases()
    expect(await store.claim({ jobId, owner: longest(6), leaseId, ttlMs: 1000 })).toMatchObject({
      status: 'claimed',
      lease: { jobId, owner: longest(6), leaseId },
    })
  })

  describe.each(['string', 'number', 'bigint'] as const)('R58: with int8 read as %s', (kind) => {
    it('the highest generations are exact', async () => {
      const parse = { string: String, number: Number, bigint: BigInt }[kind]
      const pool = bench.connect({
        types: { getTypeParser: (oid: number) => (oid === 20 ? parse : String) as never },
      })
      pool.on('connect', (client) => client.setTypeParser(16, (text) => text === 't'))
      const guard = new WriteGuard(bench.fences({ pool }))
      await guard.write(intent(MAX_GENERATION - 1), () => 1)
      const stale = guard.write(intent(MAX_GENERATION - 2, 'y'), () => 1)
      await expect(stale).rejects.toMatchObject({ highestGeneration: MAX_GENERATION - 1 })
      await guard.seal(intent(MAX_GENERATION).token)
      expect(await guard.inspect('job')).toMatchObject({
        highestGeneration: MAX_GENERATION,
        sealed: true,
      })
    })
  })
})
