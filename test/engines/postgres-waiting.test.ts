import { beforeEach, expect, it } from 'vitest'
import { WriteGuard, type WriteIntent } from 'writefence'
import { describeEngine } from './engine.ts'
import { PostgresBench } from './postgres-bench.ts'

const bench = await PostgresBench.open('waiting')

const intent = (generation: number, operationId?: string): WriteIntent => ({
  token: { jobId: 'job', generation, leaseId: 'a' },
  operationId,
})
const request = { jobId: 'job', owner: 'worker', ttlMs: 1000 }

/** The server's clock, in epoch milliseconds. */
async function serverTime(): Promise<number> {
  const { rows } = await bench.pool.query<{ now: number }>(
    'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now',
  )
  return rows[0]?.now ?? Number.NaN
}

describeEngine('PostgreSQL, waiting for a lock', bench.problem, () => {
  beforeEach(() => bench.empty())

  it('R02: a lease lasts from when the row was won, not from when the wait began', async () => {
    const store = bench.leases()
    await store.raise('job', 1)
    let claiming: Promise<unknown> | undefined
    const won = await bench.transaction(async (tx) => {
      await tx.query(`SELECT FROM ${bench.schema}.writefence_lease FOR UPDATE`)
      claiming = store.claim(request)
      await bench.untilWaiting()
      return serverTime()
    })
    expect(await claiming).toMatchObject({ status: 'claimed', lease: { generation: 2 } })
    const leaseUntil = (await store.get('job'))?.leaseUntil
    expect(leaseUntil).toBeGreaterThanOrEqual(Math.floor(won + request.ttlMs))
  })

  it('R112: a first claim that waits for another first claim sees what that one did', async () => {
    let claiming: Promise<unknown> | undefined
    await bench.transaction(async (tx) => {
      await tx.query(
        `INSERT INTO ${bench.schema}.writefence_lease
         (job_id, generation, status, owner, lease_id, ttl, lease_until, lapsed)
         VALUES ('job', 1, 'leased', 'other', 'theirs', 60000, 9999999999999, false)`,
      )
      claiming = bench.leases().claim(request)
      await bench.untilWaiting()
    })
    expect(await claiming).toMatchObject({ status: 'held', owner: 'other', generation: 1 })
  })

  it('and takes the job itself where that one came to nothing, for its whole ttl', async () => {
    const store = bench.leases()
    let claiming: Promise<unknown> | undefined
    let won = 0
    const nothing = bench.transaction(async (tx) => {
      await tx.query(
        `INSERT INTO ${bench.schema}.writefence_lease (job_id, generation, status, ended_by, lapsed)
         VALUES ('job', 0, 'released', 'operator', false)`,
      )
      claiming = store.claim(request)
      await bench.untilWaiting()
      won = await serverTime()
      throw new Error('rolled back')
    })
    await expect(nothing).rejects.toThrow('rolled back')
    expect(await claiming).toMatchObject({ status: 'claimed', lease: { generation: 1 } })
    const leaseUntil = (await store.get('job'))?.leaseUntil
    expect(leaseUntil).toBeGreaterThanOrEqual(Math.floor(won + request.ttlMs))
  })

  it('R104: an operation that was applied while its twin waited is replayed', async () => {
    const twin = new WriteGuard(bench.fences())
    let waiting: Promise<unknown> | undefined
    await new WriteGuard(bench.fences()).write(intent(1, 'x'), async (tx) => {
      waiting = twin.write(intent(1, 'x'), (other) => bench.append(other, 'twin'))
      await bench.untilWaiting()
      await bench.append(tx, 'first')
      return 'done'
    })
    expect(await waiting).toMatchObject({ status: 'replayed', result: 'done' })
    expect(await bench.log()).toEqual(['first'])
  })

  it('R53: a generation that became stale while it waited is refused', async () => {
    const stale = new WriteGuard(bench.fences())
    let waiting: Promise<unknown> | undefined
    await new WriteGuard(bench.fences()).write(intent(2), async (tx) => {
      waiting = stale.write(intent(1), (other) => bench.append(other, 'stale'))
      waiting.catch(() => {})
      await bench.untilWaiting()
      await bench.append(tx, 'new')
    })
    await expect(waiting).rejects.toMatchObject({ code: 'stale', highestGeneration: 2 })
    expect(await bench.log()).toEqual(['new'])
  })

  it('the deadline of a reservation is counted from when the job was won', async () => {
    const guard = new WriteGuard(bench.fences())
    await guard.advance(intent(1).token)
    let reserving: Promise<unknown> | undefined
    let settle = () => {}
    const won = await bench.transaction(async (tx) => {
      await tx.query(`SELECT FROM ${bench.schema}.writefence_fence FOR UPDATE`)
      const ends = new Promise<void>((resolve) => {
        settle = resolve
      })
      reserving = guard.effect(intent(1, 'x'), () => ends, { deadlineMs: 5000 })
      await bench.untilWaiting()
      return serverTime()
    })
    for (;;) {
      const { rows } = await bench.pool.query('SELECT deadline FROM writefence_operation')
      if (rows.length === 0) continue
      expect(Number(rows[0].deadline)).toBeGreaterThanOrEqual(Math.floor(won + 5000))
      break
    }
    settle()
    expect(await reserving).toMatchObject({ status: 'applied' })
  })

  it('a wait that takes too long leaves the connection in the pool', async () => {
    const pool = bench.connect({ max: 1 })
    const guard = new WriteGuard(bench.fences({ pool, timeoutMs: 1000 }))
    await guard.advance(intent(1).token)
    const { rows: before } = await pool.query('SELECT pg_backend_pid() AS pid')
    const late = await bench.transaction(async (tx) => {
      await tx.query(`SELECT FROM ${bench.schema}.writefence_fence FOR UPDATE`)
      return guard.write(intent(1, 'x'), () => 'never').catch((error: unknown) => error)
    })
    expect(late).toMatchObject({
      code: 'store_unavailable',
      retryable: true,
      cause: { code: '55P03' },
    })
    expect((await pool.query('SELECT pg_backend_pid() AS pid')).rows).toEqual(before)
    expect(await guard.write(intent(1, 'x'), () => 'now')).toMatchObject({ status: 'applied' })
  })

  it('R116: many writes of one job leave connections to those of others', async () => {
    const guard = new WriteGuard(bench.fences({ pool: bench.connect({ max: 8 }) }))
    await guard.advance(intent(1).token)
    let waiting: Promise<unknown>[] = []
    await new WriteGuard(bench.fences()).write(intent(1, 'first'), async () => {
      waiting = Array.from({ length: 20 }, (_, i) => guard.write(intent(1, `op ${i}`), () => i))
      await bench.untilWaiting()
      const other = { token: { jobId: 'other', generation: 1 } }
      expect(await guard.write(other, () => 'done')).toMatchObject({ status: 'applied' })
    })
    expect(await Promise.all(waiting)).toHaveLength(20)
  })

  it('who has waited for a turn has so much less time for the lock', async () => {
    const guard = new WriteGuard(bench.fences({ timeoutMs: 2000 }))
    await guard.advance(intent(1).token)
    await bench.transaction(async (tx) => {
      await tx.query(`SELECT FROM ${bench.schema}.writefence_fence FOR UPDATE`)
      const began = performance.now()
      const writes = Array.from({ length: 4 }, (_, i) => guard.write(intent(1, `op ${i}`), () => i))
      for (const { status } of await Promise.allSettled(writes)) expect(status).toBe('rejected')
      expect(performance.now() - began).toBeLessThan(2300)
    })
  })

  it('R127: pruning passes by what is locked, and takes it the next time', async () => {
    const guard = new WriteGuard(bench.fences())
    await guard.write(intent(1, 'x'), () => 'x')
    await guard.write(intent(1, 'y'), () => 'y')
    await bench.transaction(async (tx) => {
      await tx.query(`SELECT FROM ${bench.schema}.writefence_operation
        WHERE operation_id = 'x' FOR UPDATE`)
      expect(await guard.prune({ olderThanMs: 0 })).toEqual({ pruned: 1 })
    })
    expect(await guard.prune({ olderThanMs: 0 })).toEqual({ pruned: 1 })
  })
  it('R127: so does the pruning of leases', async () => {
    const leases = bench.leases()
    for (const jobId of ['x', 'y']) {
      const claim = await leases.claim({ jobId, owner: 'worker', ttlMs: 60_000 })
      if (claim.status !== 'claimed') throw new Error(claim.status)
      await leases.release(claim.lease)
    }
    await bench.transaction(async (tx) => {
      await tx.query(`SELECT FROM ${bench.schema}.writefence_lease WHERE job_id = 'x' FOR UPDATE`)
      expect(await leases.prune({ olderThanMs: 0 })).toEqual({ pruned: 1 })
    })
    expect(await leases.prune({ olderThanMs: 0 })).toEqual({ pruned: 1 })
  })
})
