import { Client, type PoolClient } from 'pg'
import postgres from 'postgres'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { WriteGuard, type WriteIntent } from 'writefence'
import { PostgresFenceStore, type PostgresQueryable } from 'writefence/postgres'
import { describeEngine } from './engine.ts'
import { PostgresBench } from './postgres-bench.ts'

const bench = await PostgresBench.open('within')

const intent = (jobId: string, operationId?: string, generation = 1): WriteIntent => ({
  token: { jobId, generation, leaseId: 'a' },
  operationId,
})

const guardOf = () => new WriteGuard(bench.fences())

describeEngine('PostgreSQL, within a transaction of the user', bench.problem, () => {
  beforeEach(() => bench.empty())

  it('outside of a transaction it is a TypeError, and changes nothing', async () => {
    const guard = guardOf()
    const client = await bench.pool.connect()
    const joined = guard.within(client, intent('job', 'x'), (tx) => bench.append(tx, 'lost'))
    await expect(joined).rejects.toThrow(
      new TypeError('within needs a client that is inside a transaction: BEGIN first'),
    )
    client.release()
    expect(await guard.inspect('job')).toBeUndefined()
  })

  it('in a transaction that has failed it is refused, as everything is', async () => {
    const guard = guardOf()
    const failed = bench.transaction(async (tx) => {
      await tx.query('SELECT 1/0').catch(() => {})
      await guard.within(tx, intent('job', 'x'), () => 1)
    })
    await expect(failed).rejects.toMatchObject({
      code: 'store_unavailable',
      cause: { code: '25P02' },
    })
  })

  it('a refusal and an effect that throws leave the transaction as it was, to go on', async () => {
    const guard = guardOf()
    await guard.advance(intent('job', 'x', 2).token)
    await bench.transaction(async (tx) => {
      await bench.append(tx, 'before')
      const stale = guard.within(tx, intent('job', 'x'), () => 1)
      await expect(stale).rejects.toMatchObject({ code: 'stale' })
      const throwing = guard.within(tx, intent('job', 'x', 2), () => tx.query('SELECT 1/0'))
      await expect(throwing).rejects.toMatchObject({ code: '22012' })
      await bench.append(tx, 'after')
    })
    expect(await bench.log()).toEqual(['before', 'after'])
  })

  it('an error that would have a write repeated is thrown as it is: the user repeats', async () => {
    const guard = guardOf()
    let runs = 0
    await bench.transaction(async (tx) => {
      const joined = guard.within(tx, intent('job', 'x'), async () => {
        runs += 1
        await tx.query(`DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$`)
      })
      await expect(joined).rejects.toMatchObject({ name: 'error', code: '40001' })
    })
    expect(runs).toBe(1)
    expect(await guard.inspect('job')).toMatchObject({ highestGeneration: 1 })
  })

  it.each(['within', 'write'] as const)(
    'an effect of %s that throws is undone, though one that it joined had failed before',
    async (outer) => {
      const guard = guardOf()
      await guard.advance(intent('other').token)
      const holder = await bench.pool.connect()
      onTestFinished(() => holder.release())
      await holder.query("BEGIN; SELECT FROM writefence_fence WHERE job_id = 'other' FOR UPDATE")
      onTestFinished(() => void holder.query('ROLLBACK'))
      const effect = async (tx: PoolClient) => {
        await bench.append(tx, 'first half')
        await tx.query("SET LOCAL lock_timeout = '50ms'")
        const inner = guard.within(tx, intent('other', 'y'), () => 1)
        await expect(inner).rejects.toMatchObject({ code: 'store_unavailable' })
        await bench.append(tx, 'second half')
        throw new Error('the effect fails')
      }
      if (outer === 'write') {
        await expect(guard.write(intent('job', 'x', 7), effect)).rejects.toThrow('the effect fails')
      } else {
        await bench.transaction(async (tx) => {
          const joined = guard.within(tx, intent('job', 'x', 7), effect)
          await expect(joined).rejects.toThrow('the effect fails')
          await bench.append(tx, 'after')
        })
      }
      expect(await bench.log()).toEqual(outer === 'write' ? [] : ['after'])
      expect(await guard.inspect('job')).toMatchObject({ highestGeneration: 7 })
      const again = await guard.write(intent('job', 'x', 7), (tx) => bench.append(tx, 'whole'))
      expect(again.status).toBe('applied')
    },
  )

  it('a broken store leaves the transaction as it was, to go on', async () => {
    const guard = new WriteGuard(new PostgresFenceStore(bench.connect(), { schema: 'nowhere' }))
    await bench.transaction(async (tx) => {
      const joined = guard.within(tx, intent('job', 'x'), () => 1)
      await expect(joined).rejects.toMatchObject({ code: 'store_unavailable' })
      await bench.append(tx, 'after')
    })
    expect(await bench.log()).toEqual(['after'])
  })

  it('an effect that ends the transaction is a TypeError', async () => {
    const guard = guardOf()
    const client = await bench.pool.connect()
    await client.query('BEGIN')
    const joined = guard.within(client, intent('job', 'x'), (tx) => tx.query('ROLLBACK'))
    await expect(joined).rejects.toMatchObject({
      name: 'TypeError',
      message: /COMMIT and ROLLBACK/,
    })
    client.release()
  })

  it('a job that it made no fence for leaves no trace', async () => {
    const guard = guardOf()
    await bench.transaction(async (tx) => {
      const unit = {
        job: { scope: '', jobId: 'job' },
        insideTransaction: 'wait',
        step: () => ({ answer: 'nothing', action: { kind: 'none' } as const }),
      } as const
      expect(await guard.store.within(tx, unit)).toEqual({ answer: 'nothing', effect: undefined })
    })
    const { rows } = await bench.pool.query('SELECT * FROM writefence_fence')
    expect(rows).toEqual([])
  })

  it('a wait for the job that takes too long is given up, and comes to nothing', async () => {
    const guard = new WriteGuard(bench.fences({ timeoutMs: 200 }))
    await guardOf().advance(intent('job').token)
    const holds = await bench.pool.connect()
    await holds.query('BEGIN; SELECT FROM writefence_fence FOR UPDATE')
    await bench.transaction(async (tx) => {
      const joined = guard.within(tx, intent('job', 'x'), () => bench.append(tx, 'late'))
      await expect(joined).rejects.toMatchObject({ message: /no answer within 200 ms/ })
      await holds.query('COMMIT')
    })
    holds.release()
    expect(await bench.log()).toEqual([])
    expect(await guardOf().judge(intent('job', 'x'))).toMatchObject({ status: 'apply' })
  })

  describe('units on one transaction take turns', () => {
    it('several at once are carried out one after the other', async () => {
      const guard = guardOf()
      const outcomes = await bench.transaction((tx) =>
        Promise.allSettled([
          guard.within(tx, intent('a', 'x'), () => bench.append(tx, 'a')),
          guard.within(tx, intent('b', 'x'), () => tx.query('SELECT 1/0')),
          guard.within(tx, intent('a', 'y'), () => bench.append(tx, 'c')),
        ]),
      )
      expect(outcomes.map((each) => each.status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      expect(await bench.log()).toEqual(['a', 'c'])
      expect(await guard.judge(intent('b', 'x'))).toMatchObject({ status: 'apply' })
    })

    it('an effect may join another job to its transaction: both stand or fall', async () => {
      const guard = guardOf()
      const both = (fails: boolean) => async (tx: PoolClient) => {
        await guard.within(tx, intent('inner', 'x'), () => bench.append(tx, 'inner'))
        await bench.append(tx, 'outer')
        if (fails) throw new RangeError('mine')
      }
      await expect(guard.write(intent('outer', 'x'), both(true))).rejects.toThrow('mine')
      expect(await bench.log()).toEqual([])
      await guard.write(intent('outer', 'x'), both(false))
      expect(await bench.log()).toEqual(['inner', 'outer'])
    })

    it('so may an effect that was itself joined to the transaction of the user', async () => {
      const guard = guardOf()
      await bench.transaction((tx) =>
        guard.within(tx, intent('outer', 'x'), async () => {
          await guard.within(tx, intent('inner', 'x'), () => bench.append(tx, 'inner'))
          await bench.append(tx, 'outer')
        }),
      )
      expect(await bench.log()).toEqual(['inner', 'outer'])
      expect(await guard.judge(intent('inner', 'x'))).toMatchObject({ status: 'replay' })
    })

    it('an effect ends only once what it joined and did not wait for has ended', async () => {
      const guard = guardOf()
      const joined: Promise<unknown>[] = []
      await guard.write(intent('outer', 'x'), (tx) => {
        joined.push(guard.within(tx, intent('a', 'x'), () => bench.append(tx, 'a')))
        joined.push(guard.within(tx, intent('b', 'x'), () => bench.append(tx, 'b')))
      })
      expect(await Promise.all(joined)).toMatchObject([
        { status: 'applied' },
        { status: 'applied' },
      ])
      expect(await bench.log()).toEqual(['a', 'b'])
      expect(await guard.judge(intent('b', 'x'))).toMatchObject({ status: 'replay' })
    })
  })

  describe('whatever sends the statements', () => {
    it('a client that belongs to no pool, behind a wrapper', async () => {
      const guard = new WriteGuard<PostgresQueryable, 'async'>(bench.fences())
      const client = new Client(bench.address)
      await client.connect()
      onTestFinished(() => client.end())
      await client.query('BEGIN')
      const tx: PostgresQueryable = { query: (text, values) => client.query(text, values) }
      const outcome = await guard.within(tx, intent('job', 'x'), () => 'done')
      await client.query('COMMIT')
      expect(outcome).toMatchObject({ status: 'applied', result: 'done' })
      expect(await guard.judge(intent('job', 'x'))).toMatchObject({ status: 'replay' })
    })

    it("a transaction of porsager's postgres", async () => {
      const sql = postgres({ ...bench.address, max: 1, onnotice: () => {} })
      onTestFinished(() => sql.end())
      const guard = new WriteGuard<PostgresQueryable, 'async'>(bench.fences())
      const write = (fails = false) =>
        sql.begin(async (tx) => {
          const joined: PostgresQueryable = {
            query: async (text, values) => ({ rows: await tx.unsafe(text, values as never) }),
          }
          const outcome = await guard.within(joined, intent('job', 'x'), async () => {
            await tx`INSERT INTO ${tx(bench.schema)}.log (text) VALUES ('by porsager')`
            return 'done'
          })
          if (fails) throw new RangeError('mine')
          return outcome
        })
      await expect(write(true)).rejects.toThrow('mine')
      expect(await guard.inspect('job')).toBeUndefined()
      expect(await write()).toMatchObject({ status: 'applied' })
      expect(await write()).toMatchObject({ status: 'replayed', result: 'done' })
      expect(await bench.log()).toEqual(['by porsager'])
    })
  })
})
