import { setTimeout } from 'node:timers/promises'
import type { Pool, PoolConnection } from 'mysql2/promise'
import { beforeEach, expect, it } from 'vitest'
import { WriteGuard, type WriteIntent } from 'writefence'
import { describeEngine } from './engine.ts'
import { MysqlBench } from './mysql-bench.ts'

const bench = await MysqlBench.open('waiting')

const intent = (generation: number, operationId?: string, jobId = 'job'): WriteIntent => ({
  token: { jobId, generation, leaseId: 'a' },
  operationId,
})
const request = { jobId: 'job', owner: 'worker', ttlMs: 1000 }

/** The server's clock, in epoch milliseconds. */
async function serverTime(): Promise<number> {
  const [rows] = await bench.pool.query('SELECT UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS now')
  return Number((rows as { now: string }[])[0]?.now)
}

/** Whom the server calls which connection of the pool. */
async function connectionOf(pool: Pool): Promise<unknown> {
  const [rows] = await pool.query(
    `SELECT CONNECTION_ID() AS id, @@innodb_lock_wait_timeout AS wait,
     @@idle_transaction_timeout AS idle`,
  )
  return rows
}

describeEngine('MariaDB, waiting for a lock', bench.problem, () => {
  beforeEach(() => bench.empty())

  it('R02: a lease lasts from when the row was won, not from when the wait began', async () => {
    const store = bench.leases()
    const first = await store.claim({ ...request, leaseId: 'mine' })
    if (first.status === 'claimed') await store.release(first.lease)
    let claiming: ReturnType<typeof store.claim> | undefined
    const won = await bench.transaction(async (tx) => {
      await tx.query('SELECT 1 FROM writefence_lease FOR UPDATE')
      claiming = store.claim(request)
      await bench.untilWaiting()
      return serverTime()
    })
    const claimed = await claiming
    expect(claimed).toMatchObject({ status: 'claimed', lease: { generation: 2 } })
    expect(Reflect.get(claimed ?? {}, 'lease').leaseUntil).toBeGreaterThanOrEqual(
      won + request.ttlMs,
    )
  })

  it('R112: a first claim that waits for another first claim sees what that one did', async () => {
    let claiming: Promise<unknown> | undefined
    await bench.transaction(async (tx) => {
      await tx.query(
        `INSERT INTO writefence_lease
           (job_id, generation, status, owner, lease_id, ttl, lease_until, lapsed, revision)
         VALUES ('job', 1, 'leased', 'other', 'theirs', 60000, 9999999999999, 0, 1)`,
      )
      claiming = bench.leases().claim(request)
      await bench.untilWaiting()
    })
    expect(await claiming).toMatchObject({ status: 'held', owner: 'other', generation: 1 })
  })

  it('R116: many writes of one job leave connections to those of others', async () => {
    const guard = new WriteGuard(bench.fences({ pool: bench.connect({ connectionLimit: 8 }) }))
    await guard.advance(intent(1).token)
    let waiting: Promise<unknown>[] = []
    await new WriteGuard(bench.fences()).write(intent(1, 'first'), async () => {
      waiting = Array.from({ length: 20 }, (_, i) => guard.write(intent(1, `op ${i}`), () => i))
      await bench.untilWaiting()
      expect(await guard.write(intent(1, 'x', 'other'), () => 'done')).toMatchObject({
        status: 'applied',
      })
    })
    expect(await Promise.all(waiting)).toHaveLength(20)
  })

  it('and takes the job itself where that one came to nothing, for its whole ttl', async () => {
    const store = bench.leases()
    let claiming: Promise<unknown> | undefined
    let won = 0
    const nothing = bench.transaction(async (tx) => {
      await tx.query(
        `INSERT INTO writefence_lease (job_id, generation, status, ended_by, lapsed, revision)
         VALUES ('job', 0, 'released', 'operator', 0, 1)`,
      )
      claiming = store.claim(request)
      await bench.untilWaiting()
      won = await serverTime()
      throw new Error('rolled back')
    })
    await expect(nothing).rejects.toThrow('rolled back')
    expect(await claiming).toMatchObject({ status: 'claimed', lease: { generation: 1 } })
    expect((await store.get('job'))?.leaseUntil).toBeGreaterThanOrEqual(won + request.ttlMs)
  })

  it('R02: a lease that would be over before it is written is claimed anew', async () => {
    const pool = bench.connect({ connectionLimit: 1 })
    const connection = await pool.getConnection()
    const send = connection.query.bind(connection)
    const sent: string[] = []
    // The first time, the store is held up right before it writes the lease.
    const held = {
      getConnection: async () =>
        Object.assign(connection, {
          release: () => {},
          query: async (query: { sql: string }) => {
            if (query.sql.startsWith('UPDATE') && sent.push(query.sql) === 1) await setTimeout(50)
            return send(query)
          },
        }),
    }
    const answer = await bench.leases({ pool: held as never }).claim({ ...request, ttlMs: 40 })
    connection.destroy()
    expect(sent).toHaveLength(2)
    expect(answer).toMatchObject({ status: 'claimed', lease: { generation: 1 } })
  })

  it('a repetition is told what is durable, and a refused claim writes nothing', async () => {
    const store = bench.leases()
    const revision = async () => {
      const [rows] = await bench.pool.query('SELECT revision FROM writefence_lease')
      return (rows as { revision: number }[])[0]?.revision ?? Number.NaN
    }
    const first = await store.claim({ ...request, leaseId: 'mine' })
    if (first.status !== 'claimed') return expect.unreachable()
    const before = await revision()
    // What it repeats may have been committed by another session, and not be on the disk yet.
    expect(await store.claim({ ...request, leaseId: 'mine' })).toEqual(first)
    expect(await revision()).toBe(before + 1)
    expect(await store.claim({ ...request, owner: 'other' })).toMatchObject({ status: 'held' })
    expect(await store.release({ ...first.lease, owner: 'other' })).toMatchObject({
      status: 'lost',
    })
    expect(await revision()).toBe(before + 1)
    await store.complete(first.lease)
    await store.complete(first.lease)
    expect(await revision()).toBe(before + 3)
  })

  it('nothing is left of a question about a lease that nobody had', async () => {
    const store = bench.leases()
    const lease = { jobId: 'job', generation: 1, leaseId: 'mine', owner: 'worker' }
    expect(await store.complete(lease)).toEqual({ status: 'lost', reason: 'unknown_job' })
    expect(await store.forceRelease('job')).toBeUndefined()
    expect((await bench.pool.query('SELECT * FROM writefence_lease'))[0]).toEqual([])
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
    const won = await bench.transaction(async (tx) => {
      await tx.query('SELECT 1 FROM writefence_fence FOR UPDATE')
      reserving = guard.effect(
        intent(1, 'x'),
        async () => (await bench.pool.query('SELECT deadline FROM writefence_operation'))[0],
        { deadlineMs: 5000 },
      )
      await bench.untilWaiting()
      return serverTime()
    })
    const { result } = (await reserving) as { result: { deadline: number }[] }
    expect(result[0]?.deadline).toBeGreaterThanOrEqual(won + 5000)
  })

  it.each(['MariaDB', 'MySQL'])(
    'a wait that takes too long ends with the connection as it was, by the way of %s',
    async (kind) => {
      const setUp = ['SET innodb_lock_wait_timeout = 77', 'SET idle_transaction_timeout = 88']
      const pool = bench.connect({ connectionLimit: 1 }, ...setUp)
      const guard = new WriteGuard(bench.fences({ pool: seenAs(kind, pool), timeoutMs: 300 }))
      const before = await connectionOf(pool)
      await guard.advance(intent(1).token)
      const late = await bench.transaction(async (tx) => {
        await tx.query('SELECT 1 FROM writefence_fence FOR UPDATE')
        return guard.write(intent(1, 'x'), () => 'never').catch((error: unknown) => error)
      })
      expect(late).toMatchObject({
        code: 'store_unavailable',
        retryable: true,
        message: expect.stringContaining('another transaction has the job'),
        cause: { errno: 1205 },
      })
      expect(await guard.write(intent(1, 'x'), () => 'now')).toMatchObject({ status: 'applied' })
      expect(await connectionOf(pool)).toEqual(before)
    },
  )

  it('within, a wait that takes too long leaves nothing of the call to be committed', async () => {
    const guard = new WriteGuard(bench.fences())
    await guard.advance(intent(1).token)
    const pool = bench.connect({}, 'SET innodb_lock_wait_timeout = 1')
    await bench.transaction(async (other) => {
      await other.query(`INSERT INTO writefence_operation
        (scope, job_id, operation_id, status, generation, applied_at)
        VALUES ('', 'job', 'x', 'applied', 1, 1)`)
      const joined = (tx: PoolConnection) =>
        guard.within(tx, intent(2, 'x'), () => bench.append(tx, 'late'))
      const goesOn = bench.transaction(
        async (tx) => {
          await expect(joined(tx)).rejects.toMatchObject({ code: 'store_unavailable' })
          await bench.append(tx, 'regardless')
        },
        { pool },
      )
      await goesOn
    })
    expect(await guard.inspect('job')).toMatchObject({ highestGeneration: 1 })
    expect(await bench.log()).toEqual(['regardless'])
  })

  it('writers of one job wait for each other only, not for those of others', async () => {
    const guard = new WriteGuard(bench.fences())
    await guard.advance(intent(1).token)
    await bench.transaction(async (tx) => {
      await tx.query(
        "SELECT 1 FROM writefence_fence WHERE scope = '' AND job_id = 'job' FOR UPDATE",
      )
      for (const jobId of ['a', 'jo', 'job ', 'jobs', 'z']) {
        await guard.write(intent(1, 'x', jobId), (other) => bench.append(other, jobId))
      }
    })
    expect(await bench.log()).toEqual(['a', 'jo', 'job ', 'jobs', 'z'])
  })

  it('R127: pruning that waits for one record does not hold up writes of other jobs', async () => {
    let time = 1000
    const guard = new WriteGuard(bench.fences({ now: () => time }))
    for (const id of ['a', 'b', 'c']) {
      await guard.write(intent(1, id, id), () => id)
      time += 1000
    }
    let pruning: Promise<unknown> | undefined
    await bench.transaction(async (tx) => {
      await tx.query(`SELECT 1 FROM writefence_operation
        WHERE scope = '' AND job_id = 'c' AND operation_id = 'c' FOR UPDATE`)
      pruning = guard.prune({ olderThanMs: 0 })
      await bench.untilWaiting()
      // Between two of the records that the batch has passed.
      time = 1500
      await guard.write(intent(1, 'd', 'aa'), (other) => bench.append(other, 'd'))
    })
    expect(await pruning).toEqual({ pruned: 3 })
    expect(await bench.log()).toEqual(['d'])
  })
})

/** The pool, on a server that calls itself so. */
function seenAs(kind: string, pool: Pool): Pool {
  const getConnection = async () => {
    const connection = await pool.getConnection()
    const send = connection.query.bind(connection)
    const query = async (given: { sql: string }) => {
      const sql = given.sql.replace(
        'VERSION()',
        `'${kind === 'MySQL' ? '8.4.0' : '11.4.2-MariaDB'}'`,
      )
      return send({ ...given, sql })
    }
    return Object.assign(connection, { query })
  }
  return { getConnection } as unknown as Pool
}
