import type { Pool, PoolConnection } from 'mysql2/promise'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { StoreUnavailableError, WriteGuard, type WriteIntent } from 'writefence'
import { mysqlServer } from '../support/servers.ts'
import { describeEngine } from './engine.ts'
import { MysqlBench } from './mysql-bench.ts'
import { TcpProxy } from './tcp-proxy.ts'

const bench = await MysqlBench.open('faults')
const timeoutMs = 500

function intent(generation: number, operationId?: string, jobId = 'job'): WriteIntent {
  return { token: { jobId, generation, leaseId: 'a' }, operationId }
}

const append = (text: string) => (tx: PoolConnection) => bench.append(tx, text)
const notKnown = { code: 'store_unavailable', retryable: true }

/** Checks that each connection that the pool may have can be had, and works. */
async function assertHealthy(pool: Pool, limit = 4): Promise<void> {
  const connections = await Promise.all(Array.from({ length: limit }, () => pool.getConnection()))
  for (const connection of connections) {
    const [rows] = await connection.query('SELECT @@in_transaction AS open')
    expect(rows).toEqual([{ open: 0 }])
    connection.release()
  }
}

/** How many sessions on the database the server has, besides that of the test. */
async function sessions(): Promise<number> {
  const [rows] = await bench.pool.query(
    `SELECT COUNT(*) AS count FROM information_schema.PROCESSLIST
     WHERE DB = ? AND ID <> CONNECTION_ID()`,
    [bench.database],
  )
  return Number((rows as { count: number }[])[0]?.count)
}

describeEngine('a connection to MariaDB that fails', bench.problem, () => {
  let proxy: TcpProxy
  let pool: Pool
  /** Gives up soon; the other one, on the same pool, does not mind a slow machine. */
  let guard: WriteGuard<PoolConnection, 'async'>
  let patient: WriteGuard<PoolConnection, 'async'>

  beforeEach(async () => {
    await bench.empty()
    proxy = await TcpProxy.to(mysqlServer.host, mysqlServer.port)
    onTestFinished(() => proxy.close())
    pool = bench.connect({ host: '127.0.0.1', port: proxy.port })
    guard = new WriteGuard(bench.fences({ pool, timeoutMs, effectTimeoutMs: timeoutMs }))
    patient = new WriteGuard(bench.fences({ pool, timeoutMs: 60_000 }))
    await patient.write(intent(1, 'first'), append('first'))
    await guard.inspect('job')
  })

  const steps = [
    ['begins', 'START TRANSACTION'],
    ['bounds its silence', 'SET @writefence_idle'],
    ['locks the job', 'innodb_lock_wait_timeout'],
    ['reads the job', 'SELECT f.generation'],
    ['moves the fence', 'UPDATE writefence_fence'],
    ['sets a savepoint', 'SAVEPOINT'],
    ['records the operation', 'INSERT INTO writefence_operation'],
    ['runs the effect', 'INSERT INTO writefence_test'],
    ['ends the effect', 'RELEASE'],
    ['records the result', 'SET result'],
  ] as const

  describe.each(['hang', 'lose_answers', 'cut', 'cut_answer'] as const)('and %s', (fate) => {
    it.each(steps)('when a write %s, it fails in time and never lands', async (_, statement) => {
      const met = proxy.when(statement, fate)
      const write = guard.write(intent(2, 'x'), async (tx) => {
        await bench.append(tx, 'late')
        return 'result'
      })
      await met
      await expect(write).rejects.toMatchObject(notKnown)
      await expect.poll(() => proxy.open).toBe(0)
      proxy.resume()
      // An older generation is still good: not even the fence was put.
      expect((await patient.write(intent(1, 'y'), append('next'))).status).toBe('applied')
      expect((await patient.write(intent(2, 'x'), append('x'))).status).toBe('applied')
      expect(await bench.log()).toEqual(['first', 'next', 'x'])
      await assertHealthy(pool)
    })

    it('when a write commits, it is not known, and is recognised when repeated', async () => {
      const met = proxy.when('COMMIT', fate)
      const write = guard.write(intent(2, 'x'), append('once'))
      await met
      await expect(write).rejects.toMatchObject(notKnown)
      await expect.poll(() => proxy.open).toBe(0)
      proxy.resume()
      const again = await patient.write(intent(2, 'x'), append('once'))
      expect(again.status).toBe(fate === 'cut' ? 'applied' : 'replayed')
      expect(await bench.log()).toEqual(['first', 'once'])
      await assertHealthy(pool)
    })
  })

  it('a write without an operation id that is not known may not be repeated', async () => {
    const met = proxy.when('COMMIT', 'cut_answer')
    const write = guard.write(intent(2), append('once'))
    await met
    await expect(write).rejects.toMatchObject({ ...notKnown, retryable: false })
  })

  it('R115: a session that is killed in the middle of a write takes all of it along', async () => {
    const killed = guard.write(intent(2, 'x'), async (tx) => {
      await bench.append(tx, 'half')
      await bench.pool.query(`KILL ${tx.threadId}`)
      await bench.append(tx, 'other half')
    })
    await expect(killed).rejects.toMatchObject(notKnown)
    expect((await patient.write(intent(1, 'y'), append('next'))).status).toBe('applied')
    expect(await bench.log()).toEqual(['first', 'next'])
    await assertHealthy(pool)
  })

  it('R115: so does one that is killed behind the back of the effect', async () => {
    const killed = guard.write(intent(2, 'x'), async (tx) => {
      await bench.append(tx, 'half')
      await bench.pool.query(`KILL ${tx.threadId}`)
      return 'done'
    })
    await expect(killed).rejects.toMatchObject(notKnown)
    expect((await patient.write(intent(1, 'y'), append('next'))).status).toBe('applied')
    expect(await bench.log()).toEqual(['first', 'next'])
  })

  it('an effect that takes too long is cut off, and never lands', async () => {
    const hasty = new WriteGuard(bench.fences({ pool, timeoutMs, effectTimeoutMs: 100 }))
    let told = () => {}
    const wait = new Promise<void>((resolve) => {
      told = resolve
    })
    let lateError: unknown
    const slow = hasty.write(intent(2, 'x'), async (tx) => {
      await bench.append(tx, 'half')
      await wait
      lateError = await bench.append(tx, 'late').catch((error: unknown) => error)
    })
    await expect(slow).rejects.toMatchObject({
      ...notKnown,
      message: expect.stringContaining('the effect took longer than 100 ms'),
    })
    told()
    await expect.poll(() => lateError).toBeInstanceOf(Error)
    expect((await patient.write(intent(1, 'y'), append('next'))).status).toBe('applied')
    expect(await bench.log()).toEqual(['first', 'next'])
    await assertHealthy(pool)
  })

  it('an effect whose statement hangs is told so, once it is given up', async () => {
    const hasty = new WriteGuard(bench.fences({ pool, timeoutMs, effectTimeoutMs: 100 }))
    let met: unknown
    const hung = proxy.when('SLEEP', 'hang')
    const slow = hasty.write(intent(2, 'x'), async (tx) => {
      met = await tx.query('DO SLEEP(0)').catch((error: unknown) => error)
      throw met
    })
    await hung
    await expect(slow).rejects.toMatchObject(notKnown)
    await expect.poll(() => met).toBeInstanceOf(Error)
  })

  it('within, a connection that fails is not left half done for its user to commit', async () => {
    const connection = await pool.getConnection()
    await connection.beginTransaction()
    const met = proxy.when('INSERT INTO writefence_operation', 'lose_answers')
    const joined = guard.within(connection, intent(2, 'x'), append('late'))
    await met
    await expect(joined).rejects.toMatchObject({ code: 'store_unavailable' })
    await expect(connection.query('COMMIT')).rejects.toThrow()
    await expect.poll(() => proxy.open).toBe(0)
    proxy.resume()
    expect((await patient.write(intent(1, 'y'), append('next'))).status).toBe('applied')
    expect(await bench.log()).toEqual(['first', 'next'])
  })

  it('a pool that gives no connection is waited for, but not for ever', async () => {
    const small = bench.connect({ connectionLimit: 1 })
    const starved = new WriteGuard(bench.fences({ pool: small, timeoutMs }))
    const held = await small.getConnection()
    const calls = Array.from({ length: 20 }, (_, i) =>
      starved.write(intent(2, 'x', `job ${i}`), append('late')),
    )
    for (const one of await Promise.allSettled(calls)) {
      expect(one).toMatchObject({
        status: 'rejected',
        reason: { ...notKnown, message: expect.stringContaining('no connection within 500 ms') },
      })
    }
    held.release()
    expect((await starved.write(intent(1, 'y'), append('next'))).status).toBe('applied')
    expect(await bench.log()).toEqual(['first', 'next'])
    await assertHealthy(small, 1)
  })

  it('a call that waits for a connection when its store is closed is withdrawn', async () => {
    const small = bench.connect({ connectionLimit: 1 })
    const closing = new WriteGuard(bench.fences({ pool: small }))
    const held = await small.getConnection()
    const waiting = closing.write(intent(2, 'x'), append('late'))
    await closing.close()
    held.release()
    await expect(waiting).rejects.toMatchObject({ message: 'the store is closed' })
    expect(await bench.log()).toEqual(['first'])
    await assertHealthy(small, 1)
  })

  describe('R116: a thousand failing calls leave the pool as it was', () => {
    const thousand = async (call: (i: number) => Promise<unknown>, failure: unknown) => {
      const before = await sessions()
      for (let round = 0; round < 10; round += 1) {
        const calls = Array.from({ length: 100 }, (_, i) => call(100 * round + i))
        for (const one of await Promise.allSettled(calls)) {
          expect(one).toMatchObject({ status: 'rejected', reason: failure })
        }
      }
      proxy.resume()
      await assertHealthy(pool)
      expect((await patient.write(intent(9, 'y'), append('next'))).status).toBe('applied')
      await expect.poll(sessions).toBeLessThanOrEqual(before + 4)
    }

    it('callbacks that throw', async () => {
      const boom = new Error('boom')
      const fails = async () => {
        throw boom
      }
      await thousand((i) => patient.write(intent(2, `op ${i}`, `job ${i % 10}`), fails), boom)
    })

    it('connections that die when a transaction begins', async () => {
      proxy.when('START TRANSACTION', 'cut')
      await thousand((i) => guard.advance(intent(2, 'x', `job ${i}`).token), notKnown)
    })

    it('a server that says nothing any more', async () => {
      const hasty = new WriteGuard(bench.fences({ pool, timeoutMs: 50 }))
      await hasty.inspect('job')
      proxy.when('START TRANSACTION', 'hang')
      await thousand((i) => hasty.advance(intent(2, 'x', `job ${i}`).token), notKnown)
    })
  })

  it.each<[string, () => Pool]>([
    ['the port is nobody’s', () => bench.connect({ port: 1 })],
    ['the password is wrong', () => bench.connect({ user: 'nobody', password: 'wrong' })],
    ['the database does not exist', () => bench.connect({ database: 'writefence_nowhere' })],
  ])('where %s, every verb says so', async (_, connect) => {
    const nowhere = new WriteGuard(bench.fences({ pool: connect() }))
    const leases = bench.leases({ pool: connect() })
    const calls = [
      nowhere.write(intent(1, 'x'), append('late')),
      nowhere.effect(intent(1, 'x'), async () => expect.unreachable()),
      nowhere.judge(intent(1)),
      nowhere.prune({ olderThanMs: 0 }),
      bench.fences({ pool: connect() }).createSchema(),
      leases.claim({ jobId: 'job', owner: 'w', ttlMs: 1000 }),
      leases.list(),
      leases.createSchema(),
    ]
    for (const one of await Promise.allSettled(calls)) {
      expect(one).toMatchObject({ status: 'rejected' })
      const { reason } = one as PromiseRejectedResult
      expect(reason).toBeInstanceOf(StoreUnavailableError)
      expect(reason.cause).toBeInstanceOf(Error)
    }
  })
})
