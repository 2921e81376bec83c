import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { WriteGuard } from 'writefence'
import { describeEngine } from './engine.ts'
import { PostgresBench } from './postgres-bench.ts'

const bench = await PostgresBench.open('undone')

/** Has the server undo the first transactions that update the table, as it does in a deadlock. */
async function undoFirst(times: number, table: string, code: string): Promise<void> {
  // What a sequence has given out stays given out, whatever becomes of the transaction.
  await bench.pool.query(`CREATE SEQUENCE tries;
    CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF nextval('${bench.schema}.tries') <= ${times} THEN
        RAISE EXCEPTION USING ERRCODE = '${code}';
      END IF;
      RETURN new;
    END $$;
    CREATE TRIGGER undo BEFORE UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION undo()`)
  onTestFinished(async () => {
    await bench.pool.query('DROP FUNCTION undo CASCADE; DROP SEQUENCE tries')
  })
}

/*
 * How a claim can be part of a deadlock, though it locks one row: it has the row; a session of an
 * operator's has the table in SHARE mode, and waits for the row; the claim waits for the table.
 */
describeEngine('PostgreSQL, what the server undoes', bench.problem, () => {
  beforeEach(() => bench.empty())

  it.each(['40001', '40P01'])('a claim is begun again where it is undone (%s)', async (code) => {
    await undoFirst(2, 'writefence_lease', code)
    const store = bench.leases()
    const claim = await store.claim({ jobId: 'job', owner: 'worker', ttlMs: 60_000 })
    expect(claim).toMatchObject({ status: 'claimed', lease: { generation: 1 } })
    expect(await store.get('job')).toMatchObject({ status: 'leased', owner: 'worker' })
  })

  it.each(['40001', '40P01'])('so is a seal (%s)', async (code) => {
    await undoFirst(2, 'writefence_fence', code)
    const guard = new WriteGuard(bench.fences())
    const sealed = await guard.seal({ jobId: 'job', generation: 5, leaseId: 'a' })
    expect(sealed).toMatchObject({ sealed: true, highestGeneration: 5 })
  })

  it('what is undone time and again is unavailable', async () => {
    await undoFirst(100, 'writefence_lease', '40001')
    const claim = bench.leases().claim({ jobId: 'job', owner: 'worker', ttlMs: 60_000 })
    await expect(claim).rejects.toMatchObject({
      code: 'store_unavailable',
      cause: { code: '40001' },
    })
    expect((await bench.pool.query('SELECT FROM writefence_lease')).rows).toEqual([])
  })
})
