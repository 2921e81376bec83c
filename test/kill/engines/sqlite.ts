/** What the children do on SQLite: several processes, one file. */

import type { Database } from 'better-sqlite3'
import { WriteGuard } from '../../../src/guard/write-guard.ts'
import {
  openSqlite,
  SqliteFenceStore,
  SqliteLeaseStore,
} from '../../../src/storage/sqlite/index.ts'
import { type Bank, deadlineMs, type Effect, NotInserted, patienceMs, type Told } from './bank.ts'

export function openBank(folder: string, slowness: number): Bank<Database, 'sync'> {
  const db = openSqlite(`${folder}/bank.db`)
  const insert = db.prepare(
    'INSERT INTO effects (job, operation, generation, lease, nonce) VALUES (?, ?, ?, ?, ?)',
  )
  const find = db.prepare('SELECT nonce FROM effects WHERE job = ? AND operation = ?')
  const count = db.prepare(
    "SELECT count(*) AS count FROM effects WHERE job = ? AND operation LIKE 'write-%'",
  )
  const run = ({ job, operation, generation, lease, nonce }: Effect) => {
    insert.run(job, operation, generation, lease, nonce)
  }
  return {
    guard: new WriteGuard(new SqliteFenceStore(db, { busyTimeoutMs: patienceMs(slowness) }), {
      deadlineMs: deadlineMs(slowness),
    }),
    within: (effect) => () => {
      run(effect)
      return { nonce: effect.nonce }
    },
    async insert(effect) {
      try {
        run(effect)
      } catch (error) {
        // A statement of its own: what fails has been undone before it says so.
        throw new NotInserted('not inserted', { cause: error })
      }
    },
    find: async (job, operation) => find.get(job, operation) as Told | undefined,
    count: async (job) => (count.get(job) as { count: number }).count,
  }
}

export function openLeases(folder: string, slowness: number): SqliteLeaseStore {
  return new SqliteLeaseStore(openSqlite(`${folder}/leases.db`), {
    busyTimeoutMs: patienceMs(slowness),
  })
}
