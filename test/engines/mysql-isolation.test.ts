import { type Connection, createConnection, type PoolConnection } from 'mysql2/promise'
import { beforeEach, describe, expect, it } from 'vitest'
import { WriteGuard, type WriteIntent } from 'writefence'
import { fenceStoreLaws, leaseStoreLaws } from 'writefence/conformance'
import { MysqlFenceStore } from 'writefence/mysql'
import { mysqlServer } from '../support/servers.ts'
import { describeEngine } from './engine.ts'
import { MysqlBench } from './mysql-bench.ts'

type Guard = WriteGuard<PoolConnection, 'async'>

const bench = await MysqlBench.open('isolation')

const intent = (generation: number, operationId?: string, jobId = 'job'): WriteIntent => ({
  token: { jobId, generation, leaseId: 'a' },
  operationId,
})

const failingEffect = (guard: Guard, write: WriteIntent) =>
  guard.effect(write, () => Promise.reject(new Error('no answer'))).catch(() => {})

const mustBeRepeated = {
  code: 'store_unavailable',
  retryable: true,
  message: expect.stringContaining('repeat it'),
}

const begin = (isolation: string) => [
  `SET TRANSACTION ISOLATION LEVEL ${isolation}`,
  'START TRANSACTION',
]

/** What sessions of users may be set to, besides what they are by default. */
const sessions = [
  ['SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE', "SET time_zone = '+09:00'"],
  ['SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED', "SET time_zone = '-08:00'"],
  ['SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED', 'SET autocommit = 0'],
  ['SET SESSION TRANSACTION READ ONLY', 'SET innodb_snapshot_isolation = 1'],
]
let pools = 0

/** A pool whose sessions differ from those of the pool before. */
function connect() {
  pools += 1
  return bench.connect({}, ...(sessions[pools % sessions.length] ?? []))
}

describeEngine('MariaDB, isolation', bench.problem, () => {
  beforeEach(() => bench.empty())

  describe('R04, R113: with other defaults for isolation and time zone in each pool', () => {
    it.each(leaseStoreLaws)('lease store: $name', async (law) => {
      await law.run({ open: async (now) => bench.leases({ now, pool: connect() }) })
    })

    it.each(fenceStoreLaws)('fence store: $name', async (law) => {
      const user = connect()
      await law.run<PoolConnection, 'async'>({
        open: async (now) => bench.fences({ now, pool: connect() }),
        append: (tx, text) => bench.append(tx, text),
        log: () => bench.log(),
        transaction: (body) =>
          bench.transaction(body, { pool: user, begin: ['START TRANSACTION READ WRITE'] }),
      })
    })
  })

  describe.each<[string, string[]]>([
    ['a REPEATABLE READ', []],
    ['a snapshot-isolated', ['SET innodb_snapshot_isolation = 1']],
  ])('within %s transaction', (_, setUp) => {
    /** A transaction whose snapshot is older than what `change` does to the job. */
    async function joinAfter(change: (guard: Guard) => Promise<unknown>): Promise<unknown> {
      const guard = new WriteGuard(bench.fences())
      const joined = bench.transaction(
        async (tx) => {
          await tx.query('SELECT COUNT(*) FROM log')
          await change(guard)
          return guard.within(tx, intent(5, 'x'), () => bench.append(tx, 'within'))
        },
        { begin: begin('REPEATABLE READ'), pool: bench.connect({}, ...setUp) },
      )
      return joined.catch((error: unknown) => error)
    }

    it.each<[string, (guard: Guard) => Promise<unknown>]>([
      ['applied the same operation', (guard) => guard.write(intent(5, 'x'), () => 'first')],
      ['applied another operation', (guard) => guard.write(intent(5, 'y'), () => 'first')],
      [
        'joined a transaction to apply another',
        (guard) =>
          bench.transaction((tx) => guard.within(tx, intent(5, 'y'), () => 'first'), {
            begin: begin('READ COMMITTED'),
          }),
      ],
      ['left the same operation unknown', (guard) => failingEffect(guard, intent(5, 'x'))],
      ['sealed the job', (guard) => guard.seal(intent(5).token)],
      ['advanced the fence', (guard) => guard.advance(intent(6).token)],
    ])('a snapshot from before somebody %s is refused', async (_, change) => {
      await new WriteGuard(bench.fences()).advance(intent(5).token)
      expect(await joinAfter(change)).toMatchObject(mustBeRepeated)
      expect(await bench.log()).toEqual([])
    })

    it('R112: so is one from before the very first fence of the job', async () => {
      const first = (guard: Guard) => guard.write(intent(5, 'x'), () => 'first')
      expect(await joinAfter(first)).toMatchObject(mustBeRepeated)
      expect(await bench.log()).toEqual([])
    })

    it('one in which nothing has changed goes on', async () => {
      await new WriteGuard(bench.fences()).advance(intent(5).token)
      const outcome = await joinAfter((guard) => guard.inspect('job'))
      expect(outcome).toMatchObject({ status: 'applied', highestGeneration: 5 })
      expect(await bench.log()).toEqual(['within'])
    })
  })

  it('within a READ COMMITTED transaction what others changed meanwhile is seen', async () => {
    const guard = new WriteGuard(bench.fences())
    const outcome = await bench.transaction(
      async (tx) => {
        await tx.query('SELECT COUNT(*) FROM log')
        await guard.write(intent(5, 'x'), () => 'first')
        return guard.within(tx, intent(6, 'x'), () => bench.append(tx, 'within'))
      },
      { begin: begin('READ COMMITTED') },
    )
    expect(outcome).toMatchObject({ status: 'replayed', result: 'first', highestGeneration: 6 })
    expect(await bench.log()).toEqual([])
  })

  it.each(['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'])(
    'R104: within a %s transaction that waited for its twin the twin is seen',
    async (isolation) => {
      const guard = new WriteGuard(bench.fences())
      let waiting: Promise<unknown> | undefined
      await guard.write(intent(1, 'x'), async (tx) => {
        waiting = bench.transaction(
          (other) => guard.within(other, intent(1, 'x'), () => bench.append(other, 'twin')),
          { begin: begin(isolation) },
        )
        await bench.untilWaiting()
        await bench.append(tx, 'first')
        return 'done'
      })
      expect(await waiting).toMatchObject({ status: 'replayed', result: 'done' })
      expect(await bench.log()).toEqual(['first'])
    },
  )

  it('two transactions that each raise a first fence do not wait for each other', async () => {
    const guard = new WriteGuard(bench.fences())
    const outcome = await bench.transaction(async (one) => {
      await guard.within(one, intent(1, 'x', 'job a'), () => bench.append(one, 'a'))
      return bench.transaction(async (two) => {
        await guard.within(two, intent(1, 'x', 'job b'), () => bench.append(two, 'b'))
        return guard.within(one, intent(1, 'x', 'job c'), () => bench.append(one, 'c'))
      })
    })
    expect(outcome).toMatchObject({ status: 'applied' })
    expect((await bench.log()).toSorted()).toEqual(['a', 'b', 'c'])
  })

  it('within outside of a transaction is a TypeError, and changes nothing', async () => {
    const guard = new WriteGuard(bench.fences())
    const connection = await bench.connect().getConnection()
    const joined = guard.within(connection, intent(1, 'x'), () => bench.append(connection, 'x'))
    await expect(joined).rejects.toThrow(TypeError)
    connection.release()
    expect([await bench.log(), await guard.inspect('job')]).toEqual([[], undefined])
  })

  it('within what is no connection of promises is a TypeError', async () => {
    const guard = new WriteGuard(bench.fences())
    const pool = bench.connect()
    const callbacks = (await pool.getConnection()).connection
    for (const tx of [undefined, {}, callbacks, pool] as PoolConnection[]) {
      await expect(guard.within(tx, intent(1), () => 'late')).rejects.toThrow(TypeError)
    }
    expect(await guard.inspect('job')).toBeUndefined()
  })

  it('within a connection that is of no pool', async () => {
    const guard = new WriteGuard(new MysqlFenceStore<Connection>(bench.connect()))
    const connection = await createConnection({ ...mysqlServer, database: bench.database })
    await connection.beginTransaction()
    await guard.within(connection, intent(1, 'x'), (tx) => bench.append(tx, 'x'))
    await connection.commit()
    await connection.end()
    expect(await bench.log()).toEqual(['x'])
  })

  it('reads wait for nobody, in sessions that are SERIALIZABLE too', async () => {
    const pool = bench.connect({}, 'SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE')
    const guard = new WriteGuard(bench.fences({ pool, timeoutMs: 1000 }))
    await guard.advance(intent(1).token)
    await guard.write(intent(2, 'x'), async () => {
      expect(await guard.inspect('job')).toMatchObject({ highestGeneration: 1 })
      expect(await guard.judge(intent(2, 'x'))).toMatchObject({ status: 'apply' })
    })
  })

  it('a transaction left open on a connection of the pool is in nobody’s way', async () => {
    const pool = bench.connect({ connectionLimit: 1 }, 'SET autocommit = 0')
    const guard = new WriteGuard(bench.fences({ pool }))
    for (const call of [
      () => guard.advance(intent(1).token),
      () => guard.inspect('job'),
      () => guard.prune({ olderThanMs: 0 }),
      () => bench.leases({ pool }).list(),
    ]) {
      await pool.query('SELECT COUNT(*) FROM log')
      await call()
    }
  })

  it('a connection that commits nothing by itself is inside a transaction', async () => {
    const guard = new WriteGuard(bench.fences())
    const connection = await bench.connect({}, 'SET autocommit = 0').getConnection()
    await guard.within(connection, intent(1, 'x'), () => bench.append(connection, 'x'))
    expect(await guard.inspect('job')).toBeUndefined()
    await connection.commit()
    connection.release()
    expect(await guard.inspect('job')).toMatchObject({ highestGeneration: 1 })
    expect(await bench.log()).toEqual(['x'])
  })
})
