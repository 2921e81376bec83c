/**
 * Your own transaction, your own tables: `within` judges the write and records the operation inside
 * a transaction that you begin and you commit.
 *
 * Until you commit, the verdict is provisional, the fence included. That is why nothing joins your
 * transaction unless you hand it over.
 */

import assert from 'node:assert/strict'
import { WriteGuard, WriteRefusedError } from 'writefence'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'

const db = openSqlite(':memory:')
db.exec('CREATE TABLE stock (item TEXT PRIMARY KEY, pieces INTEGER NOT NULL CHECK (pieces >= 0))')
db.exec('CREATE TABLE audit (text TEXT NOT NULL)')
db.exec("INSERT INTO stock VALUES ('chair', 10)")
const take = db
  .prepare('UPDATE stock SET pieces = pieces - ? WHERE item = ? RETURNING pieces')
  .pluck()
const note = db.prepare('INSERT INTO audit VALUES (?)')
const pieces = db.prepare("SELECT pieces FROM stock WHERE item = 'chair'").pluck()
const notes = db.prepare('SELECT text FROM audit ORDER BY rowid').pluck()

const guard = new WriteGuard(new SqliteFenceStore(db))

/** The application's own transaction: the order and the audit stand or fall together. */
const order = db.transaction((generation: number, operationId: string, count: number) => {
  note.run(`${operationId}: ${count} chairs`)
  const token = { jobId: 'orders', generation, leaseId: `lease-of-${generation}` }
  const left = guard.within(db, { token, operationId }, () => take.get(count, 'chair') as number)
  return { status: left.status, left: left.result }
})

// `immediate`: a transaction that has read before it gets the lock may have read the past.
assert.deepEqual(order.immediate(3, 'order-1', 4), { status: 'applied', left: 6 })
assert.deepEqual(order.immediate(3, 'order-1', 4), { status: 'replayed', left: 6 })

// An older generation is refused. The error ends the transaction, so its note goes as well.
assert.throws(
  () => order.immediate(2, 'order-2', 1),
  (error) => error instanceof WriteRefusedError && error.code === 'stale',
)

// The effect fails: your transaction decides what becomes of it. Here all of it is undone, and the
// fence that this token had moved with it: `write` would have kept that.
assert.throws(() => order.immediate(4, 'order-3', 100), /CHECK constraint failed/)
assert.equal((await guard.inspect('orders'))?.highestGeneration, 3)

assert.equal(pieces.get(), 6)
assert.deepEqual(notes.all(), ['order-1: 4 chairs', 'order-1: 4 chairs'])
