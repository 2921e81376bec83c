/**
 * etcd: the generation is the create revision of the key that the election is held by.
 *
 * Runs against a real etcd (ETCD_URL, or 127.0.0.1:2379).
 */

import assert from 'node:assert/strict'
import { randomInt, randomUUID } from 'node:crypto'
import { write, written } from './issuers/destination.ts'
import { Etcd, tokenOfEtcd } from './issuers/etcd.ts'
import { reached } from './issuers/reached.ts'

const etcd = new Etcd()
const TTL = 60

const leaseOfA = await reached(`etcd at ${etcd.url}`, () => etcd.grant(TTL))
const leaseOfB = await etcd.grant(TTL)
const election = `writefence/${randomUUID()}`

const [idOfA, idOfB] = [randomUUID(), randomUUID()] // one leaseId for each lease of etcd
const leaderA = await etcd.campaign(election, leaseOfA)
const tokenOfA = tokenOfEtcd('report', leaderA, idOfA)
assert.equal(await write(tokenOfA, 'A'), 'written')
const first = await etcd.leader(election)

// A tells its followers something: its key changes, its create revision does not. Nor does it when
// A campaigns once more, say because the answer was lost.
await etcd.proclaim(leaderA, 'still me')
const renewed = await etcd.leader(election)
assert.equal(renewed.create_revision, leaderA.rev)
assert.deepEqual(tokenOfEtcd('report', await etcd.campaign(election, leaseOfA), idOfA), tokenOfA)
assert.equal(await write(tokenOfA, 'A, renewed'), 'written')

// B is waiting when A's lease ends. It ends by being revoked here; expiry does the same.
const campaignOfB = etcd.campaign(election, leaseOfB)
await etcd.revoke(leaseOfA)
const leaderB = await campaignOfB
const tokenOfB = tokenOfEtcd('report', leaderB, idOfB)
assert(tokenOfB.generation > tokenOfA.generation)
assert.equal(await write(tokenOfB, 'B'), 'written')
assert.equal(await write(tokenOfA, 'A, late'), 'stale')
assert.deepEqual(written('report'), ['A', 'A, renewed', 'B'])

// What goes wrong with every other number that etcd has to offer. -------------------------------

const second = await etcd.leader(election)
const bad = (jobId: string, number: string) => ({ jobId, generation: Number(number) })

// `version` counts the changes of one key, and every leader has a key of its own: it starts again.
assert.deepEqual([first.version, renewed.version, second.version], ['1', '2', '1'])
assert.equal(await write(bad('version', renewed.version), 'A'), 'written')
assert.equal(await write(bad('version', second.version), 'B'), 'stale') // a good one, for ever
assert.equal(await write(bad('version', renewed.version), 'A, late'), 'written') // a stale one
// Where A has announced nothing, both are 1, and nothing tells them apart.
assert.equal(await write(bad('version twice', first.version), 'A'), 'written')
assert.equal(await write(bad('version twice', second.version), 'B'), 'written')
assert.equal(await write(bad('version twice', first.version), 'A, late'), 'written') // a stale one

// `mod_revision` rises within a leadership: A's own request, sent before A announced something and
// arriving after the next one, is refused.
assert.equal(await write(bad('mod_revision', renewed.mod_revision), 'A, second'), 'written')
assert.equal(await write(bad('mod_revision', first.mod_revision), 'A, first'), 'stale')

// A lease id has no order. What etcd draws begins with bits of a member's id, and is nearly always
// too large for a generation: refused. What clients choose is whatever they choose.
await assert.rejects(write(bad('lease', '7668682563582112776'), 'A'), RangeError)
const chosen = randomInt(2, 2 ** 47)
const [older, newer] = [await etcd.grant(TTL, `${chosen}`), await etcd.grant(TTL, `${chosen - 1}`)]
assert.equal(await write(bad('chosen lease', older), 'A'), 'written')
assert.equal(await write(bad('chosen lease', newer), 'B'), 'stale') // a good one, for ever

// The right field, read at the wrong time: A asks who leads, and takes the answer for its own. The
// number belongs in the answer to one's own campaign. A leaseId shows the mistake.
const readLate = { rev: (await etcd.leader(election)).create_revision }
assert.equal(await write(tokenOfEtcd('report', readLate, idOfA), 'A'), 'conflict')
assert.equal(await write(bad('read late', leaderB.rev), 'B'), 'written')
assert.equal(await write(bad('read late', readLate.rev), 'A, late'), 'written') // a stale one

for (const lease of [leaseOfB, older, newer]) await etcd.revoke(lease)
