/**
 * Consul: the generation is the LockIndex of a key that is never deleted.
 *
 * No Consul is asked here: its answers are written out, as its API documents them and its state
 * store makes them.
 */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type KeyEntry, tokenOfConsul } from './issuers/consul.ts'
import { write, written } from './issuers/destination.ts'

const [a, b] = [randomUUID(), randomUUID()] // sessions
const key = { Key: 'jobs/report', CreateIndex: 90 }

// A acquires the key, which did not exist. Then its session is invalidated, and B acquires it.
const lockedByA: KeyEntry = { ...key, LockIndex: 1, ModifyIndex: 90, Session: a }
const lockedByB: KeyEntry = { ...key, LockIndex: 2, ModifyIndex: 97, Session: b }

const [idOfA, idOfB] = [randomUUID(), randomUUID()] // one leaseId for each session
const tokenOfA = tokenOfConsul('report', lockedByA, a, idOfA)
assert.equal(await write(tokenOfA, 'A'), 'written')

// Acquiring once more under the same session is no new acquisition: the value and the ModifyIndex
// change, the LockIndex does not.
const again: KeyEntry = { ...lockedByA, ModifyIndex: 93 }
assert.deepEqual(tokenOfConsul('report', again, a, idOfA), tokenOfA)

const tokenOfB = tokenOfConsul('report', lockedByB, b, idOfB)
assert.equal(await write(tokenOfB, 'B'), 'written')
assert.equal(await write(tokenOfA, 'A, late'), 'stale')
assert.deepEqual(written('report'), ['A', 'B'])

// A reads the entry too late, and finds B's. Without the look at the session it would take 2 for
// its own.
assert.throws(() => tokenOfConsul('report', lockedByB, a, idOfA), /not locked by this/)

// What goes wrong otherwise. ---------------------------------------------------------------------

const bad = (jobId: string, generation: number) => ({ jobId, generation })

// A key that is deleted takes its LockIndex with it. Sessions with the behavior `delete` do that,
// and so does the command `consul lock` when it ends.
const [c, d] = [randomUUID(), randomUUID()]
const deleted: KeyEntry = { ...key, CreateIndex: 120, LockIndex: 1, ModifyIndex: 120, Session: c }
assert.equal(await write(tokenOfConsul('report', deleted, c, randomUUID()), 'C'), 'stale') // good
const once: KeyEntry = { ...deleted, LockIndex: 2, ModifyIndex: 124, Session: d }
// The second holder of the new key has the number of the second one of the old key. Its leaseId
// shows that it is another; without leaseIds both would write.
assert.equal(await write(tokenOfConsul('report', once, d, randomUUID()), 'D'), 'conflict')
assert.equal(await write(bad('deleted', lockedByB.LockIndex), 'B'), 'written')
assert.equal(await write(bad('deleted', once.LockIndex), 'D'), 'written')
assert.equal(await write(bad('deleted', lockedByB.LockIndex), 'B, late'), 'written') // a stale one

// CreateIndex is the same for all holders of a key: nobody is ever stale.
assert.equal(await write(bad('CreateIndex', lockedByA.CreateIndex), 'A'), 'written')
assert.equal(await write(bad('CreateIndex', lockedByB.CreateIndex), 'B'), 'written')
assert.equal(await write(bad('CreateIndex', lockedByA.CreateIndex), 'A, late'), 'written') // stale

// ModifyIndex rises whenever the key changes: A's own request, sent before A changed its value and
// arriving after the next one, is refused.
assert.equal(await write(bad('ModifyIndex', again.ModifyIndex), 'A, second'), 'written')
assert.equal(await write(bad('ModifyIndex', lockedByA.ModifyIndex), 'A, first'), 'stale')
