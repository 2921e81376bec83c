/** What the children do on MariaDB. */

import { setTimeout as sleep } from 'node:timers/promises'
import { createPool, type Pool, type PoolConnection, type RowDataPacket } from 'mysql2/promise'
import { WriteGuard } from '../../../src/guard/write-guard.ts'
import { MysqlFenceStore, MysqlLeaseStore } from '../../../src/storage/mysql/index.ts'
import { type Bank, deadlineMs, type Effect, NotInserted, patienceMs, type Told } from './bank.ts'
import { patiently } from './patience.ts'

const INSERT =
  'INSERT INTO effects (job, operation, generation, lease, nonce) VALUES (?, ?, ?, ?, ?)'
const FIND = 'SELECT nonce FROM effects WHERE job = ? AND operation = ?'
const COUNT = "SELECT count(*) AS count FROM effects WHERE job = ? AND operation LIKE 'write-%'"

/** `name` is that of the destination, whichever process it is, and of its user. */
export async function openBank(
  where: string,
  name: string,
  slowness: number,
): Promise<Bank<PoolConnection, 'async'>> {
  const pool = poolOf(where, name)
  // What a predecessor has sent may still be running: afterwards, nothing of it will appear.
  await endAll(pool, 'USER = SUBSTRING_INDEX(USER(), "@", 1)')
  const query = async (sql: string, values: string[]) =>
    (await pool.query<RowDataPacket[]>(sql, values))[0][0]
  const find = async (job: string, operation: string) =>
    (await query(FIND, [job, operation])) as Told | undefined
  return {
    guard: new WriteGuard(new MysqlFenceStore(pool, times(slowness)), {
      deadlineMs: deadlineMs(slowness),
    }),
    within: (effect) => async (tx) => {
      await tx.query(INSERT, valuesOf(effect))
      await sleep(5 * Math.random())
      return { nonce: effect.nonce }
    },
    async insert(effect) {
      const connection = await pool.getConnection().catch(() => {
        throw new NotInserted()
      })
      try {
        await connection.query(INSERT, valuesOf(effect))
        connection.release()
      } catch {
        connection.destroy()
        await endAll(pool, `ID = ${connection.threadId}`)
        const found = await patiently(() => find(effect.job, effect.operation))
        if (found?.nonce !== effect.nonce) throw new NotInserted()
      }
    },
    find,
    count: async (job) => Number((await query(COUNT, [job]))?.count ?? 0),
  }
}

export async function openLeases(where: string, slowness: number): Promise<MysqlLeaseStore> {
  return new MysqlLeaseStore(poolOf(where, 'leases'), { timeoutMs: patienceMs(slowness) })
}

function poolOf(where: string, user: string): Pool {
  return createPool({ ...JSON.parse(where), user, connectionLimit: 8, connectTimeout: 3_000 })
}

function valuesOf({ job, operation, generation, lease, nonce }: Effect) {
  return [job, operation, generation, lease, nonce]
}

/** A statement whose connection was lost may go on until its thread is gone. */
async function endAll(pool: Pool, which: string): Promise<void> {
  const sql = `SELECT ID FROM information_schema.PROCESSLIST
    WHERE ${which} AND ID <> CONNECTION_ID()`
  for (;;) {
    const [threads] = await patiently(() => pool.query<RowDataPacket[]>(sql))
    if (threads.length === 0) return
    for (const { ID } of threads) await pool.query(`KILL ${ID}`).catch(() => {})
    await sleep(20)
  }
}

function times(slowness: number) {
  return { timeoutMs: patienceMs(slowness), effectTimeoutMs: patienceMs(slowness) }
}
