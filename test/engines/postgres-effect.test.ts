import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { PoolClient } from 'pg'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { WriteGuard, type WriteIntent } from 'writefence'
import { describeEngine } from './engine.ts'
import { PostgresBench } from './postgres-bench.ts'

const bench = await PostgresBench.open('effect')

const intent = (generation: number, operationId?: string, jobId = 'job'): WriteIntent => ({
  token: { jobId, generation, leaseId: 'a' },
  operationId,
})

function guardOf(options: Parameters<typeof bench.fences>[0] = {}) {
  return new WriteGuard(bench.fences(options))
}

/** The faults that are published during the test. */
function faults(): unknown[] {
  const told: unknown[] = []
  const listen = (fault: unknown) => void told.push(fault)
  subscribe('writefence:fault', listen)
  onTestFinished(() => void unsubscribe('writefence:fault', listen))
  return told
}

/** The error of a write that must fail, and whether the fence was kept, for the next generation. */
async function failureOf(guard: ReturnType<typeof guardOf>, effect: (tx: PoolClient) => unknown) {
  const error = await guard.write(intent(2, 'x'), effect).then(
    () => expect.fail('the write succeeded'),
    (thrown: unknown) => thrown,
  )
  await expect(guard.write(intent(1, 'y'), () => 1)).rejects.toMatchObject({ code: 'stale' })
  return error
}

describeEngine('PostgreSQL, what an effect may do to its transaction', bench.problem, () => {
  beforeEach(() => bench.empty())

  it('it runs in a READ COMMITTED transaction whose commit is durable', async () => {
    const isolation = '-c default_transaction_isolation=serializable'
    const pool = bench.connect({ options: `${isolation} -c synchronous_commit=off` })
    const { result } = await guardOf({ pool }).write(intent(1, 'x'), async (tx) => {
      const { rows } = await tx.query(
        `SELECT current_setting('transaction_isolation') AS isolation,
           current_setting('synchronous_commit') AS durable`,
      )
      return rows[0]
    })
    expect(result).toEqual({ isolation: 'read committed', durable: 'on' })
  })

  it('what is stricter than a durable commit stays', async () => {
    const pool = bench.connect({ options: '-c synchronous_commit=remote_apply' })
    const { result } = await guardOf({ pool }).write(intent(1, 'x'), async (tx) => {
      const { rows } = await tx.query('SHOW synchronous_commit')
      return rows[0].synchronous_commit
    })
    expect(result).toBe('remote_apply')
  })

  it('R52: where it throws, what it did is undone, the fence is not', async () => {
    const guard = guardOf()
    const thrown = await failureOf(guard, async (tx) => {
      await bench.append(tx, 'undone')
      throw new RangeError('mine')
    })
    expect(thrown).toEqual(new RangeError('mine'))
    await guard.write(intent(2, 'x'), (tx) => bench.append(tx, 'done'))
    expect(await bench.log()).toEqual(['done'])
  })

  it('a statement that failed and was ignored undoes it', async () => {
    const guard = guardOf()
    const error = await failureOf(guard, async (tx) => {
      await bench.append(tx, 'lost')
      await tx.query('SELECT 1/0').catch(() => {})
    })
    expect(error).toMatchObject({ code: '25P02' })
    expect(await bench.log()).toEqual([])
  })

  it('so does one that it did not wait for', async () => {
    const guard = guardOf()
    const error = await failureOf(guard, (tx) => {
      bench.append(tx, 'lost').catch(() => {})
      tx.query('SELECT 1/0').catch(() => {})
    })
    expect(error).toMatchObject({ code: '25P02' })
    expect(await bench.log()).toEqual([])
  })

  it('a constraint that was put off is looked at before the commit', async () => {
    await bench.pool.query(`CREATE TABLE IF NOT EXISTS parent (id bigint PRIMARY KEY);
      CREATE TABLE IF NOT EXISTS child
        (parent bigint REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)`)
    const guard = guardOf()
    const told = faults()
    const error = await failureOf(guard, async (tx) => {
      await bench.append(tx, 'orphan')
      await tx.query(`INSERT INTO ${bench.schema}.child (parent) VALUES (1)`)
    })
    expect(error).toMatchObject({ code: '23503' })
    // A COMMIT that fails ends the transaction, as if the effect had.
    expect(told).toEqual([])
    expect(await bench.log()).toEqual([])
  })

  it('a COMMIT of its own is an error, and is not run a second time', async () => {
    const guard = guardOf()
    const commits = async (tx: PoolClient) => {
      await bench.append(tx, 'committed')
      await tx.query('COMMIT')
    }
    const told = faults()
    const error = await failureOf(guard, commits)
    expect(told).toMatchObject([{ fault: 'transaction_ended_by_callback', jobId: 'job' }])
    expect(error).toMatchObject({ name: 'TypeError', message: /COMMIT and ROLLBACK/ })
    expect(await guard.write(intent(2, 'x'), commits)).toMatchObject({ status: 'replayed' })
    expect(await bench.log()).toEqual(['committed'])
  })

  it('nor is one that throws after its COMMIT: the record was there before', async () => {
    const guard = guardOf()
    const commits = async (tx: PoolClient) => {
      await bench.append(tx, 'committed')
      await tx.query('COMMIT')
      throw new RangeError('mine')
    }
    expect(await failureOf(guard, commits)).toEqual(new RangeError('mine'))
    expect(await guard.write(intent(2, 'x'), commits)).toMatchObject({ status: 'replayed' })
    expect(await bench.log()).toEqual(['committed'])
  })

  it.each(['ROLLBACK', 'ROLLBACK; BEGIN', 'COMMIT; BEGIN'])('%s is an error', async (sql) => {
    const guard = guardOf()
    const error = await failureOf(guard, (tx) => tx.query(sql))
    expect(error).toMatchObject({ name: 'TypeError', message: /COMMIT and ROLLBACK/ })
  })

  it('the error that it throws after a ROLLBACK of its own is the one that is told', async () => {
    const error = await failureOf(guardOf(), async (tx) => {
      await tx.query('ROLLBACK')
      throw new RangeError('mine')
    })
    expect(error).toEqual(new RangeError('mine'))
  })

  it('a result that PostgreSQL cannot keep is a TypeError', async () => {
    const codec = { encode: () => 'a\0b', decode: (text: string) => text }
    const guard = new WriteGuard(bench.fences(), { codec })
    const error = await failureOf(guard, async (tx) => {
      await bench.append(tx, 'lost')
      return 'a result'
    })
    expect(error).toMatchObject({ name: 'TypeError', message: /NUL/ })
    expect(await bench.log()).toEqual([])
  })

  describe('deadlocks', () => {
    it('of two effects that lock the same rows crosswise, one is run again', async () => {
      await bench.pool.query(`INSERT INTO log (text) VALUES ('one'), ('two')`)
      const guard = guardOf()
      let arrived = 0
      let open = () => {}
      const both = new Promise<void>((resolve) => {
        open = resolve
      })
      const lock = (tx: PoolClient, text: string) =>
        tx.query(`UPDATE ${bench.schema}.log SET text = text WHERE text = $1`, [text])
      const crosswise = (job: string, [first, second]: [string, string]) =>
        guard.write(intent(1, 'x', job), async (tx) => {
          await lock(tx, first)
          arrived += 1
          if (arrived === 2) open()
          await both
          await lock(tx, second)
          await bench.append(tx, job)
        })
      const outcomes = await Promise.all([
        crosswise('a', ['one', 'two']),
        crosswise('b', ['two', 'one']),
      ])
      expect(outcomes.map((each) => each.status)).toEqual(['applied', 'applied'])
      expect((await bench.log()).slice(2).sort()).toEqual(['a', 'b'])
      expect(arrived).toBe(3)
    })

    it.each(['40001', '40P01'])('one that never ends (%s) is thrown as it is', async (code) => {
      const guard = guardOf()
      let runs = 0
      const error = await failureOf(guard, async (tx) => {
        runs += 1
        await tx.query(`DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '${code}'; END $$`)
      })
      expect(error).toMatchObject({ code })
      expect(runs).toBe(6)
    })

    it('one that comes with the commit is repeated too', async () => {
      await bench.pool.query(`CREATE TABLE late (id bigint);
        CREATE FUNCTION fail_late() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$;
        CREATE CONSTRAINT TRIGGER fails AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED
          FOR EACH ROW EXECUTE FUNCTION fail_late()`)
      const guard = guardOf()
      let runs = 0
      const outcome = await guard.write(intent(1, 'x'), async (tx) => {
        runs += 1
        if (runs < 3) await tx.query(`INSERT INTO ${bench.schema}.late VALUES (1)`)
        await bench.append(tx, 'done')
      })
      expect(outcome.status).toBe('applied')
      expect([runs, await bench.log()]).toEqual([3, ['done']])
    })

    it('the wrapper of an ORM around one is looked into', async () => {
      const guard = guardOf()
      let runs = 0
      const outcome = await guard.write(intent(1, 'x'), (tx) => {
        runs += 1
        if (runs > 1) return bench.append(tx, 'done')
        throw new Error('query failed', { cause: Object.assign(new Error(), { code: '40P01' }) })
      })
      expect(outcome.status).toBe('applied')
      expect(await bench.log()).toEqual(['done'])
    })
  })
})
