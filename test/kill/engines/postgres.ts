/** What the children do on PostgreSQL. */

import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { WriteGuard } from '../../../src/guard/write-guard.ts'
import { PostgresFenceStore, PostgresLeaseStore } from '../../../src/storage/postgres/index.ts'
import { type Bank, deadlineMs, type Effect, NotInserted, patienceMs, type Told } from './bank.ts'
import { patiently } from './patience.ts'

const INSERT =
  'INSERT INTO effects (job, operation, generation, lease, nonce) VALUES ($1, $2, $3, $4, $5)'
const FIND = 'SELECT nonce FROM effects WHERE job = $1 AND operation = $2'
const COUNT =
  "SELECT count(*)::int AS count FROM effects WHERE job = $1 AND operation LIKE 'write-%'"

/** `name` is that of the destination, whichever process it is. */
export async function openBank(
  where: string,
  name: string,
  slowness: number,
): Promise<Bank<pg.PoolClient, 'async'>> {
  const pool = poolOf(where, name)
  // The application's own: its clients have somebody to tell that their connection is lost.
  const own = poolOf(where, name).on('connect', (client) => void client.on('error', ignored))
  // What a predecessor has sent may still be running: afterwards, nothing of it will appear.
  await endOthers(pool, name)
  const find = async (job: string, operation: string) =>
    (await pool.query<Told>(FIND, [job, operation])).rows[0]
  return {
    guard: new WriteGuard(new PostgresFenceStore<pg.PoolClient>(pool, times(slowness)), {
      deadlineMs: deadlineMs(slowness),
    }),
    within: (effect) => async (tx) => {
      await tx.query(INSERT, valuesOf(effect))
      await sleep(5 * Math.random())
      return { nonce: effect.nonce }
    },
    async insert(effect) {
      const client = await own.connect().catch(() => {
        throw new NotInserted()
      })
      try {
        await client.query(INSERT, valuesOf(effect))
        client.release()
      } catch {
        client.release(true)
        await untilGone(pool, (client as { processID?: number }).processID ?? 0)
        if ((await patiently(() => find(effect.job, effect.operation)))?.nonce === effect.nonce)
          return
        throw new NotInserted()
      }
    },
    find,
    count: async (job) => (await pool.query<{ count: number }>(COUNT, [job])).rows[0]?.count ?? 0,
  }
}

export async function openLeases(where: string, slowness: number): Promise<PostgresLeaseStore> {
  return new PostgresLeaseStore(poolOf(where, 'leases'), { timeoutMs: patienceMs(slowness) })
}

function poolOf(where: string, name: string): pg.Pool {
  const pool = new pg.Pool({
    ...JSON.parse(where),
    application_name: name,
    max: 8,
    connectionTimeoutMillis: 3_000,
  })
  // A connection that was cut while nobody used it.
  pool.on('error', ignored)
  return pool
}

function ignored(): void {}

function valuesOf({ job, operation, generation, lease, nonce }: Effect) {
  return [job, operation, generation, lease, nonce]
}

async function endOthers(pool: pg.Pool, name: string): Promise<void> {
  const sql = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = $1 AND pid <> pg_backend_pid()`
  while ((await patiently(() => pool.query(sql, [name]))).rows.length > 0) await sleep(20)
}

/** A statement whose connection was lost may go on until its backend is gone. */
async function untilGone(pool: pg.Pool, pid: number): Promise<void> {
  const sql = 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1'
  while ((await patiently(() => pool.query(sql, [pid]))).rows.length > 0) await sleep(20)
}

function times(slowness: number) {
  return { timeoutMs: patienceMs(slowness), effectTimeoutMs: patienceMs(slowness) }
}
