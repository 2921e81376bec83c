/**
 * A process of the demo: the service that is written to, with the lease service beside it.
 * Arguments: the database file, and `guarded` or `unguarded`.
 */

import type { AddressInfo } from 'node:net'
import express from 'express'
import { WriteGuard } from 'writefence'
import { fenceRoutes, fencing, fencingErrors, leaseRoutes } from 'writefence/express'
import { openSqlite, SqliteFenceStore, SqliteLeaseStore } from 'writefence/sqlite'

const [file = '', world] = process.argv.slice(2)

const db = openSqlite(file)
db.exec('CREATE TABLE credits (amount INTEGER NOT NULL)')
const insert = db.prepare('INSERT INTO credits (amount) VALUES (?)')
const sum = db.prepare('SELECT coalesce(sum(amount), 0) FROM credits').pluck()
const balance = () => ({ balance: sum.get() as number })

/** The effect. It must run in a transaction, which it gets in both worlds. */
function credit(amount: number) {
  insert.run(amount)
  return balance()
}

const app = express().use(express.json())
app.use(leaseRoutes(new SqliteLeaseStore(db), { authorize: 'none' }))
if (world === 'guarded') {
  const guard = new WriteGuard(new SqliteFenceStore(db))
  const fence = fencing(guard)
  app.use(fenceRoutes(guard, { authorize: 'none' }))
  app.get('/balance', fence, (_, res) => res.json(balance()))
  app.post('/credits', fence, async (req, res) => {
    const { result } = await fence.of(req).write(() => credit(req.body.amount))
    res.status(201).json(result)
  })
  app.use(fencingErrors())
} else {
  const creditInTransaction = db.transaction(credit)
  app.get('/balance', (_, res) => res.json(balance()))
  app.post('/credits', (req, res) => {
    res.status(201).json(creditInTransaction.immediate(req.body.amount))
  })
}

const server = app.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.send?.({ answer: `http://127.0.0.1:${port}` })
})
// The demo is over, or was killed: nothing of it stays behind.
process.on('disconnect', () => process.exit())
