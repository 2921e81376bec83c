/**
 * The paused worker, in one process.
 *
 * Worker A claims a job and looks at its lease: held. Then it pauses for longer than the lease
 * lasts, while worker B takes the job over. When A goes on, it knows nothing of all that.
 *
 * Nobody waits here: the store's clock is handed in, and is set forward by hand.
 */

import assert from 'node:assert/strict'
import { runWithLease, WriteGuard, WriteRefusedError } from 'writefence'
import { openSqlite, SqliteFenceStore, SqliteLeaseStore } from 'writefence/sqlite'

let now = Date.now()
const leases = new SqliteLeaseStore(openSqlite(':memory:'), { now: () => now })

// The destination: an account, and the guard in the same database.
const db = openSqlite(':memory:')
db.exec('CREATE TABLE credits (amount INTEGER NOT NULL)')
const credit = db.prepare('INSERT INTO credits (amount) VALUES (?)')
const balance = db.prepare('SELECT coalesce(sum(amount), 0) FROM credits').pluck()
const guard = new WriteGuard(new SqliteFenceStore(db))

const job = { jobId: 'import-42', ttlMs: 60_000, destinations: [guard] }

const outcomeOfA = await runWithLease(leases, { ...job, owner: 'A' }, async (leaseOfA) => {
  leaseOfA.assertHeld() // passes, and is of no use: what follows comes after the look
  now += 61_000 // the pause: A's lease runs out

  const outcomeOfB = await runWithLease(leases, { ...job, owner: 'B' }, (leaseOfB) =>
    guard.write({ token: leaseOfB, operationId: 'salary' }, () => void credit.run(100)),
  )
  assert.equal(outcomeOfB.status, 'completed')
  assert.equal(balance.get(), 100)

  // A goes on where it had stopped. Without the guard it would now pay a second time.
  await guard.write({ token: leaseOfA, operationId: 'salary' }, () => void credit.run(100))
})

assert.equal(balance.get(), 100)
// The refusal came out of the handler, and `runWithLease` knows what it means.
assert.equal(outcomeOfA.status, 'lost')
assert.equal(outcomeOfA.reason, 'fenced')
assert(outcomeOfA.error instanceof WriteRefusedError)
assert.equal(outcomeOfA.error.code, 'stale')
console.log(outcomeOfA.error.message)
