import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { PoolConnection } from 'mysql2/promise'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { type FaultEvent, WriteGuard, type WriteIntent } from 'writefence'
import { describeEngine } from './engine.ts'
import { MysqlBench } from './mysql-bench.ts'

type Effect = (tx: PoolConnection) => Promise<unknown>

const bench = await MysqlBench.open('effects')

function intent(generation: number, operationId?: string, jobId = 'job'): WriteIntent {
  return { token: { jobId, generation, leaseId: 'a' }, operationId }
}

const append = (text: string) => (tx: PoolConnection) => bench.append(tx, text)
const boom = new Error('boom')

/** What the server says when it has undone a transaction; wrapped, as query builders do. */
const deadlock = () =>
  new Error('query failed', { cause: Object.assign(new Error('Deadlock found'), { errno: 1213 }) })

/** The faults that are told during the test. */
function faults(): FaultEvent[] {
  const told: FaultEvent[] = []
  const listen = (event: unknown) => told.push(event as FaultEvent)
  subscribe('writefence:fault', listen)
  onTestFinished(() => void unsubscribe('writefence:fault', listen))
  return told
}

describeEngine('effects on MariaDB', bench.problem, () => {
  let guard: WriteGuard<PoolConnection, 'async'>

  beforeEach(async () => {
    await bench.empty()
    guard = new WriteGuard(bench.fences())
  })

  describe('that the server undoes', () => {
    it('of two that deadlock one is run again, and both are applied once', async () => {
      await bench.pool.query('CREATE TABLE seat (id INT PRIMARY KEY, taken INT NOT NULL)')
      await bench.pool.query('INSERT INTO seat VALUES (1, 0), (2, 0)')
      const bothHoldOne = gate(2)
      let runs = 0
      const take = (tx: PoolConnection, id: number) =>
        tx.query('UPDATE seat SET taken = taken + 1 WHERE id = ?', [id])
      const cross = (first: number, second: number) =>
        guard.write(intent(2, 'x', `job ${first}`), async (tx) => {
          runs += 1
          await take(tx, first)
          if (runs <= 2) await bothHoldOne()
          await take(tx, second)
          return first
        })
      const outcomes = await Promise.all([cross(1, 2), cross(2, 1)])
      expect(outcomes).toMatchObject([{ result: 1 }, { result: 2 }])
      expect(runs).toBe(3)
      const [seats] = await bench.pool.query('SELECT taken FROM seat')
      expect(seats).toEqual([{ taken: 2 }, { taken: 2 }])
    })

    it('since a row has changed that they see as it was are run again', async () => {
      await bench.pool.query('CREATE TABLE stock (id INT PRIMARY KEY, taken INT NOT NULL)')
      await bench.pool.query('INSERT INTO stock VALUES (1, 0)')
      const take = 'UPDATE stock SET taken = taken + 1'
      const pool = bench.connect({}, 'SET innodb_snapshot_isolation = 1')
      let runs = 0
      await new WriteGuard(bench.fences({ pool })).write(intent(2, 'x'), async (tx) => {
        runs += 1
        if (runs === 1) await bench.pool.query(take)
        await tx.query(take)
      })
      expect(runs).toBe(2)
      expect((await bench.pool.query('SELECT taken FROM stock'))[0]).toEqual([{ taken: 2 }])
    })

    it('a few times are left out in the end: busy, and the fence stands', async () => {
      let runs = 0
      const write = guard.write(intent(5, 'x'), async (tx) => {
        runs += 1
        await append('half')(tx)
        await tx.query('ROLLBACK')
        throw deadlock()
      })
      await expect(write).rejects.toMatchObject({ code: 'store_unavailable', retryable: true })
      expect(runs).toBe(5)
      await expect(guard.write(intent(4), append('late'))).rejects.toMatchObject({ code: 'stale' })
      expect((await guard.write(intent(5, 'x'), append('whole'))).status).toBe('applied')
      expect(await bench.log()).toEqual(['whole'])
    })

    it('in a transaction of the user’s are for the user to repeat', async () => {
      const joined = bench.transaction((tx) =>
        guard.within(tx, intent(5, 'x'), async () => {
          await tx.query('ROLLBACK')
          throw deadlock()
        }),
      )
      await expect(joined).rejects.toMatchObject({
        code: 'store_unavailable',
        message: expect.stringContaining('query failed'),
      })
      expect(await guard.inspect('job')).toBeUndefined()
    })

    it('an error of that kind that has undone nothing is the effect’s own', async () => {
      const error = deadlock()
      const write = guard.write(intent(5, 'x'), async (tx) => {
        await append('half')(tx)
        throw error
      })
      await expect(write).rejects.toBe(error)
      await expect(guard.write(intent(4), append('late'))).rejects.toMatchObject({ code: 'stale' })
      expect(await bench.log()).toEqual([])
    })
  })

  describe('that end the transaction of the guard', () => {
    it.each<[string, Effect, string[]]>([
      ['ROLLBACK', (tx) => tx.query('ROLLBACK'), []],
      [
        'ROLLBACK, and go on',
        (tx) => tx.query('ROLLBACK').then(() => append('after')(tx)),
        ['after'],
      ],
      [
        'ROLLBACK, and begin another one',
        async (tx) => {
          await tx.rollback()
          await tx.beginTransaction()
          await append('other')(tx)
        },
        [],
      ],
    ])('by %s: a TypeError, no record, and the fence stands', async (_, end, left) => {
      const told = faults()
      let runs = 0
      const write = guard.write(intent(5, 'x'), async (tx) => {
        runs += 1
        await append('half')(tx)
        await end(tx)
      })
      await expect(write).rejects.toThrow(TypeError)
      expect(told).toMatchObject([{ fault: 'transaction_ended_by_callback' }])
      expect(runs).toBe(1)
      await expect(guard.write(intent(4), append('late'))).rejects.toMatchObject({ code: 'stale' })
      expect((await guard.write(intent(5, 'x'), append('whole'))).status).toBe('applied')
      expect(await bench.log()).toEqual([...left, 'whole'])
    })

    it.each<[string, Effect]>([
      ['COMMIT', (tx) => tx.query('COMMIT')],
      [
        'COMMIT, and begin another one',
        async (tx) => {
          await tx.commit()
          await tx.beginTransaction()
          await append('other')(tx)
        },
      ],
      ['a statement that commits by itself', (tx) => tx.query('ANALYZE TABLE log')],
    ])('by %s: a TypeError, but the record is there with the effect', async (_, end) => {
      const told = faults()
      const write = guard.write(intent(5, 'x'), async (tx) => {
        await append('once')(tx)
        await end(tx)
      })
      await expect(write).rejects.toThrow(TypeError)
      expect(told).toMatchObject([{ fault: 'transaction_ended_by_callback' }])
      expect((await guard.write(intent(5, 'x'), append('twice'))).status).toBe('replayed')
      expect(await bench.log()).toEqual(['once'])
    })

    it('by COMMIT, and then throw get their own error: the record was there before', async () => {
      const commits: Effect = async (tx) => {
        await append('once')(tx)
        await tx.query('COMMIT')
        throw boom
      }
      await expect(guard.write(intent(5, 'x'), commits)).rejects.toBe(boom)
      expect((await guard.write(intent(5, 'x'), commits)).status).toBe('replayed')
      expect(await bench.log()).toEqual(['once'])
    })

    it('and then throw get their own error, and are not run again', async () => {
      let runs = 0
      const write = guard.write(intent(5, 'x'), async (tx) => {
        runs += 1
        await tx.query('ROLLBACK')
        throw boom
      })
      await expect(write).rejects.toBe(boom)
      expect(runs).toBe(1)
      await expect(guard.write(intent(4), append('late'))).rejects.toMatchObject({ code: 'stale' })
    })

    it('within a transaction of the user’s: a TypeError', async () => {
      const joined = bench.transaction((tx) =>
        guard.within(tx, intent(5, 'x'), () => tx.query('ROLLBACK').then(() => 'done')),
      )
      await expect(joined).rejects.toThrow(TypeError)
      expect(await guard.inspect('job')).toBeUndefined()
    })
  })

  describe('whose result is long', () => {
    it('have it replayed up to half of what a statement may hold', async () => {
      const result = { long: '🔑'.repeat(1_500_000) }
      await guard.write(intent(1, 'x'), async () => result)
      const again = await guard.write(intent(1, 'x'), async () => 'other')
      expect(again.status).toBe('replayed')
      expect(again.result).toEqual(result)
    })

    it('are undone where it is longer, with a RangeError that says so', async () => {
      const write = guard.write(intent(5, 'x'), async (tx) => {
        await append('half')(tx)
        return 'x'.repeat(10_000_000)
      })
      await expect(write).rejects.toThrow(/max_allowed_packet/)
      await expect(write).rejects.toThrow(RangeError)
      await expect(guard.write(intent(4), append('late'))).rejects.toMatchObject({ code: 'stale' })
      expect(await bench.log()).toEqual([])
    })

    it('elsewhere are told, and stay unsettled', async () => {
      const told = faults()
      const outcome = await guard.effect(intent(5, 'x'), async () => 'x'.repeat(10_000_000))
      expect(outcome.status).toBe('applied')
      const error = expect.objectContaining({ name: 'RangeError' })
      expect(told).toMatchObject([{ fault: 'settle_failed', error }])
      expect(await guard.unsettled()).toMatchObject([{ operationId: 'x', status: 'in_flight' }])
    })
  })

  it('a verdict rests on a commit of its own: what it saw may not be on the disk yet', async () => {
    const revision = async () =>
      (await bench.pool.query('SELECT revision FROM writefence_fence'))[0] as { revision: number }[]
    await guard.write(intent(5, 'x'), append('once'))
    const before = (await revision())[0]?.revision ?? Number.NaN
    await guard.write(intent(5, 'x'), append('twice'))
    await expect(guard.write(intent(4, 'y'), append('late'))).rejects.toThrow()
    expect(await revision()).toEqual([{ revision: before + 2 }])
  })

  it('nothing is left of a question about a job that nobody knows', async () => {
    expect(await guard.reopen('job')).toBeUndefined()
    await guard.resolve({ jobId: 'job', operationId: 'x' }, { status: 'not_applied' })
    expect((await bench.pool.query('SELECT * FROM writefence_fence'))[0]).toEqual([])
  })
})

/** Resolves for all of so many callers once the last of them has come. */
function gate(count: number): () => Promise<void> {
  let open = () => {}
  let missing = count
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return () => {
    missing -= 1
    if (missing === 0) open()
    return opened
  }
}
