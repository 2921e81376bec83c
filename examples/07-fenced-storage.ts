/**
 * A storage of your own, none of whose writes can be called without a token: `fencedStorage` puts
 * an intent where the transaction was.
 */

import assert from 'node:assert/strict'
import { fencedStorage, WriteGuard, WriteRefusedError } from 'writefence'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'

const db = openSqlite(':memory:')
db.exec('CREATE TABLE accounts (id TEXT PRIMARY KEY, balance INTEGER NOT NULL)')
db.exec("INSERT INTO accounts VALUES ('alice', 0), ('bob', 0)")
type Db = typeof db

const guard = new WriteGuard(new SqliteFenceStore(db))
const accounts = fencedStorage(guard, {
  credit(tx: Db, id: string, amount: number) {
    const sql = 'UPDATE accounts SET balance = balance + ? WHERE id = ? RETURNING balance'
    const balance = tx.prepare(sql).pluck().get(amount, id) as number | undefined
    if (balance === undefined) throw new Error(`there is no account ${id}`)
    return balance
  },
  transfer(tx: Db, from: string, to: string, amount: number) {
    const add = tx.prepare('UPDATE accounts SET balance = balance + ? WHERE id = ?')
    add.run(-amount, from)
    add.run(amount, to)
  },
})

const token = { jobId: 'settlement', generation: 4, leaseId: 'a-random-id-of-this-acquisition' }
const op = (operationId: string) => ({ token, operationId })

// Each call is one transaction with its check, and a duplicate gets the recorded result.
assert.equal((await accounts.credit(op('c-1'), 'alice', 50)).result, 50)
assert.equal((await accounts.credit(op('c-2'), 'alice', 50)).result, 100)
const again = await accounts.credit(op('c-1'), 'alice', 50)
assert.deepEqual([again.status, again.result], ['replayed', 50])

await accounts.transfer(op('t-1'), 'alice', 'bob', 30)

// An effect that throws undoes itself and its record: it may be tried again.
await assert.rejects(accounts.credit(op('c-3'), 'carol', 1), /no account carol/)

// One operation id for two things, here another amount, is not taken for a duplicate.
await assert.rejects(
  accounts.credit(op('c-1'), 'alice', 51),
  (error) => error instanceof WriteRefusedError && error.code === 'mismatch',
)

const balances = db.prepare('SELECT id, balance FROM accounts ORDER BY id').all()
assert.deepEqual(balances, [
  { id: 'alice', balance: 70 },
  { id: 'bob', balance: 30 },
])
