/**
 * An Express destination that writes through its fence (`protect: 'write'`, the default), and what
 * it answers to a worker, to a retry, and to a worker that comes too late.
 */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { WriteGuard } from 'writefence'
import { fencing, fencingErrors } from 'writefence/express'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'

const db = openSqlite(':memory:')
db.exec('CREATE TABLE credits (account TEXT NOT NULL, amount INTEGER NOT NULL)')
const credit = db.prepare('INSERT INTO credits (account, amount) VALUES (?, ?)')
const sum = db.prepare('SELECT sum(amount) FROM credits WHERE account = ?').pluck()

const guard = new WriteGuard(new SqliteFenceStore(db))
const fence = fencing(guard)

const app = express()
app.use(express.json()) // before the guard: two requests under one key are compared by their bodies
app.post('/accounts/:id/credits', fence, async (req, res) => {
  // Check, fence, record and effect are one transaction. What is returned is recorded with it, and
  // is the result of every later request for the same operation.
  const { result } = await fence.of(req).write(() => {
    credit.run(req.params.id, req.body.amount)
    return { balance: sum.get(req.params.id) as number }
  })
  res.status(201).json(result)
})
app.use(fencingErrors())

const server = app.listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo

/** What `lease.fetch` sends, by hand: a worker in any language can. */
async function send(generation: number, key: string, amount = 100) {
  const response = await fetch(`http://127.0.0.1:${port}/accounts/alice/credits`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'Fencing-Token': `${generation};job="payroll";lease="lease-of-${generation}"`,
      'Idempotency-Key': `"${key}"`,
    },
    body: JSON.stringify({ amount }),
  })
  const verdict = response.headers.get('Fencing-Verdict')
  const body = (await response.json()) as Record<string, unknown>
  return { status: response.status, verdict, body }
}

const first = await send(7, 'pay-alice')
assert.deepEqual(first, { status: 201, verdict: 'applied;highest=7', body: { balance: 100 } })

// The next holder of the lease does not know whether its predecessor came this far, and sends the
// same: it gets the recorded answer, and nobody is paid twice.
const again = await send(8, 'pay-alice')
assert.deepEqual(again, { status: 201, verdict: 'replayed;highest=8', body: { balance: 100 } })

// The predecessor wakes up.
const stale = await send(7, 'pay-alice-bonus', 20)
assert.equal(stale.status, 412)
assert.equal(stale.body.code, 'stale')
assert.equal(stale.body.retryable, false)
assert.equal(stale.body.highestGeneration, 8)

// One key for two different requests is a bug of the worker's, and is told so.
const mismatch = await send(8, 'pay-alice', 999)
assert.equal(mismatch.status, 422)

assert.equal(sum.get('alice'), 100)
server.close()
