import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { WriteGuard, type WriteIntent } from 'writefence'
import { describeEngine } from './engine.ts'
import { MysqlBench } from './mysql-bench.ts'

const bench = await MysqlBench.open('undone')

const write: WriteIntent = {
  token: { jobId: 'job', generation: 5, leaseId: 'a' },
  operationId: 'x',
}

/** Has the server say of the first changes of the table what it says in a deadlock. */
async function undoFirst(times: number, change: string, table: string): Promise<void> {
  // An engine without transactions: what is counted stays, whatever becomes of the transaction.
  await bench.pool.query('CREATE TABLE tries (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE = MyISAM')
  await bench.pool.query(`CREATE TRIGGER undoes BEFORE ${change} ON ${table} FOR EACH ROW BEGIN
    INSERT INTO tries VALUES ();
    IF LAST_INSERT_ID() <= ${times} THEN
      SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'Deadlock found';
    END IF;
  END`)
  onTestFinished(async () => {
    await bench.pool.query('DROP TRIGGER undoes')
    await bench.pool.query('DROP TABLE tries')
  })
}

describeEngine('MariaDB, what the server undoes', bench.problem, () => {
  beforeEach(() => bench.empty())

  it('a claim is begun again', async () => {
    await undoFirst(2, 'UPDATE', 'writefence_lease')
    const store = bench.leases()
    const claim = await store.claim({ jobId: 'job', owner: 'worker', ttlMs: 60_000 })
    expect(claim).toMatchObject({ status: 'claimed', lease: { generation: 1 } })
    expect(await store.get('job')).toMatchObject({ status: 'leased', owner: 'worker' })
  })

  it('so is a write, whose effect has not begun yet', async () => {
    await undoFirst(2, 'INSERT', 'writefence_operation')
    const guard = new WriteGuard(bench.fences())
    let runs = 0
    const outcome = await guard.write(write, (tx) => {
      runs += 1
      return bench.append(tx, 'once')
    })
    expect([outcome.status, runs]).toEqual(['applied', 1])
    expect(await bench.log()).toEqual(['once'])
  })

  it('what is undone time and again is busy, and nothing is left of it', async () => {
    await undoFirst(100, 'INSERT', 'writefence_operation')
    const guard = new WriteGuard(bench.fences())
    await expect(guard.write(write, () => expect.unreachable())).rejects.toMatchObject({
      code: 'store_unavailable',
      retryable: true,
      cause: { errno: 1213 },
    })
    expect(await guard.inspect('job')).toBeUndefined()
  })
})
