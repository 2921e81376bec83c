/**
 * The unguarded side: the statements that a careful person writes by hand for the same promise, in
 * one IMMEDIATE transaction per write, all prepared. No validation, no events, no queue.
 */

import type { Database } from 'better-sqlite3'

export interface Credit {
  readonly jobId: string
  readonly operationId: string
  readonly account: number
}

/** The lease that both sides write under, of every job. */
export const GENERATION = 7
export const LEASE_ID = '0b7f2f9e-3c1d-4a55-9a0e-6f3c2d1b4a5e'

/** One account per job: the effect of a write is an update of its row. */
export function createAccounts(db: Database, count: number): void {
  db.exec('CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL) STRICT')
  const insert = db.prepare('INSERT INTO account (id, balance) VALUES (?, 0)')
  db.transaction(() => {
    for (let id = 1; id <= count; id++) insert.run(id)
  })()
}

/** What both sides do for a write; returns the new balance. */
export function creditStatement(db: Database): (account: number) => number {
  const update = db
    .prepare('UPDATE account SET balance = balance + 1 WHERE id = ? RETURNING balance')
    .pluck()
  return (account) => update.get(account) as number
}

/** Returns a function that makes one durable write. */
export function writeByHand(db: Database, jobIds: readonly string[]): (credit: Credit) => number {
  db.exec(`
    CREATE TABLE hand_fence (
      scope TEXT NOT NULL, job_id TEXT NOT NULL, generation INTEGER NOT NULL, lease_id TEXT,
      sealed INTEGER NOT NULL, PRIMARY KEY (scope, job_id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE hand_operation (
      scope TEXT NOT NULL, job_id TEXT NOT NULL, operation_id TEXT NOT NULL,
      generation INTEGER NOT NULL, status TEXT NOT NULL, result TEXT, at INTEGER NOT NULL,
      PRIMARY KEY (scope, job_id, operation_id)
    ) STRICT, WITHOUT ROWID;
    -- Without it old records could not be deleted beside live traffic.
    CREATE INDEX hand_operation_at ON hand_operation (at);`)
  const insertFence = db.prepare(`INSERT INTO hand_fence VALUES ('', ?, ?, ?, 0)`)
  db.transaction(() => {
    for (const jobId of jobIds) insertFence.run(jobId, GENERATION, LEASE_ID)
  })()

  const selectFence = db.prepare<
    [string],
    { generation: number; lease_id: string; sealed: number }
  >(`SELECT generation, lease_id, sealed FROM hand_fence WHERE scope = '' AND job_id = ?`)
  const selectOperation = db.prepare<[string, string]>(
    `SELECT status, result FROM hand_operation
      WHERE scope = '' AND job_id = ? AND operation_id = ?`,
  )
  const insertOperation = db.prepare(
    `INSERT INTO hand_operation VALUES
      ('', ?, ?, ?, 'applied', ?, CAST(round(unixepoch('subsec') * 1000) AS INTEGER))`,
  )
  const apply = creditStatement(db)
  return db.transaction(({ jobId, operationId, account }: Credit): number => {
    const fence = selectFence.get(jobId)
    if (fence === undefined || fence.generation !== GENERATION) throw new Error('stale')
    if (fence.lease_id !== LEASE_ID || fence.sealed === 1) throw new Error('refused')
    if (selectOperation.get(jobId, operationId) !== undefined) throw new Error('duplicate')
    const balance = apply(account)
    insertOperation.run(jobId, operationId, GENERATION, JSON.stringify(balance))
    return balance
  }).immediate
}
