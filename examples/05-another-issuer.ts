/**
 * Tokens of another issuer. Whatever gives out a number that only grows with each new holder can
 * stand in for the lease store: a ZooKeeper `czxid`, the revision of an etcd key, a database
 * sequence. Such a token has no leaseId.
 */

import assert from 'node:assert/strict'
import { type FencingToken, WriteGuard, type WriteRefusedError } from 'writefence'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'

const db = openSqlite(':memory:')
db.exec('CREATE TABLE config (value TEXT NOT NULL)')
const put = db.prepare('INSERT INTO config (value) VALUES (?)')
const current = db.prepare('SELECT value FROM config ORDER BY rowid DESC LIMIT 1').pluck()
const guard = new WriteGuard(new SqliteFenceStore(db))

/** What an election in etcd gives its leader: the revision at which the key was created. */
function tokenOf(leader: { readonly createRevision: string }): FencingToken {
  // 64-bit numbers come as strings. What is not exact as a number is refused, never rounded.
  return { jobId: 'config', generation: Number(leader.createRevision) }
}

const write = (token: FencingToken, value: string) =>
  guard.write({ token }, () => void put.run(value))
const refusal = (attempt: Promise<unknown>): Promise<WriteRefusedError['code'] | undefined> =>
  attempt.then(
    () => undefined,
    (error) => error.code,
  )

const oldLeader = tokenOf({ createRevision: '80412' })
const newLeader = tokenOf({ createRevision: '80977' })

await write(oldLeader, 'from the old leader')
await write(newLeader, 'from the new leader')
assert.equal(await refusal(write(oldLeader, 'late')), 'stale')

// The revisions need not be neighbours, only grow. Without an operation id duplicates are not
// recognised: stale writes are refused all the same.
await write(newLeader, 'once more')
assert.equal(current.get(), 'once more')

// Absent equals only absent. A second issuer that hands out the same number shows at once, if its
// tokens have a leaseId: two holders of one generation are an alarm.
assert.equal(await refusal(write({ ...newLeader, leaseId: 'somebody' }, 'x')), 'conflict')

await assert.rejects(write(tokenOf({ createRevision: '9007199254740993' }), 'x'), RangeError)
assert.equal(current.get(), 'once more')
