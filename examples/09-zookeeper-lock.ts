/**
 * ZooKeeper: the generation is the czxid of the ephemeral node that the lock is held by.
 *
 * Runs against a real ZooKeeper (ZOOKEEPER as host:port, or 127.0.0.1:2181).
 */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Stat } from 'node-zookeeper-client'
import { write, written } from './issuers/destination.ts'
import { reached } from './issuers/reached.ts'
import { address, ask, connect, enter, reachFront, tokenOfZooKeeper } from './issuers/zookeeper.ts'

const clientOfA = await reached(`ZooKeeper at ${address}`, () => connect())
const clientOfB = await connect()
const parent = `/writefence-${randomUUID()}`

const placeOfA = await enter(clientOfA, parent)
await reachFront(clientOfA, placeOfA)
const tokenOfA = tokenOfZooKeeper('report', placeOfA.stat, randomUUID())
assert.equal(await write(tokenOfA, 'A'), 'written')

// A changes what its node says: the node's czxid stays.
const nodeOfA = `${parent}/${placeOfA.name}`
const renewed = await ask<Stat>((done) => clientOfA.setData(nodeOfA, Buffer.from('A'), done))
assert.deepEqual(renewed.czxid, placeOfA.stat.czxid)

// B is waiting when A's session ends. It ends by being closed here; expiry does the same.
const placeOfB = await enter(clientOfB, parent)
const waiting = reachFront(clientOfB, placeOfB)
clientOfA.close()
await waiting
const tokenOfB = tokenOfZooKeeper('report', placeOfB.stat, randomUUID())
assert(tokenOfB.generation > tokenOfA.generation)
assert.equal(await write(tokenOfB, 'B'), 'written')
assert.equal(await write(tokenOfA, 'A, late'), 'stale')
assert.deepEqual(written('report'), ['A', 'B'])

// What goes wrong with every other number that ZooKeeper has to offer. --------------------------

const bad = (jobId: string, generation: number | bigint) => ({
  jobId,
  generation: Number(generation),
})
const suffix = (name: string) => Number(name.slice('lock-'.length))

// `version` counts the changes of one node, and starts at 0, which is no generation. With 1 added:
const versions = [renewed.version, placeOfB.stat.version]
assert.deepEqual(versions, [1, 0])
assert.equal(await write(bad('version', renewed.version + 1), 'A'), 'written')
assert.equal(await write(bad('version', placeOfB.stat.version + 1), 'B'), 'stale') // a good one
assert.equal(await write(bad('version', renewed.version + 1), 'A, late'), 'written') // a stale one

// `mzxid` rises within a session: A's own request, sent before A changed its node and arriving
// after the next one, is refused.
const sent = placeOfA.stat.mzxid.readBigInt64BE()
assert.equal(await write(bad('mzxid', renewed.mzxid.readBigInt64BE()), 'A, second'), 'written')
assert.equal(await write(bad('mzxid', sent), 'A, first'), 'stale')

// The number in the node's name is counted by the parent, and dies with it. Parents of locks do
// die: container nodes, which Curator makes for its locks, are deleted when they are empty.
await ask((done) => clientOfB.remove(`${parent}/${placeOfB.name}`, done))
await ask((done) => clientOfB.remove(parent, done))
const placeAgain = await enter(clientOfB, parent)
const suffixes = [suffix(placeOfB.name), suffix(placeAgain.name)]
assert.deepEqual(suffixes, [1, 0])
assert.equal(await write(bad('suffix', suffix(placeOfB.name) + 1), 'B'), 'written')
assert.equal(await write(bad('suffix', suffix(placeAgain.name) + 1), 'C'), 'stale') // a good one
assert.equal(await write(tokenOfZooKeeper('report', placeAgain.stat, randomUUID()), 'C'), 'written')

// Half of the czxid: the upper 32 bits are the epoch of ZooKeeper's own leader, and the lower ones
// are counted from 0 in each.
const [before, after] = [0x1_0000_0f00n, 0x2_0000_0003n]
assert.equal(await write(bad('czxid', before), 'A'), 'written')
assert.equal(await write(bad('czxid', after), 'B'), 'written')
assert.equal(await write(bad('lower half', BigInt.asUintN(32, before)), 'A'), 'written')
assert.equal(await write(bad('lower half', BigInt.asUintN(32, after)), 'B'), 'stale') // a good one

// All of it fits below 10^15 until 2 764 472 319 in epoch 232 830. What does not is refused.
const last = (232_830n << 32n) + 2_764_472_319n
assert.equal(last, 999_999_999_999_999n)
assert.equal(await write(bad('large', last), 'A'), 'written')
await assert.rejects(write(bad('large', last + 1n), 'B'), RangeError)

await ask((done) => clientOfB.remove(`${parent}/${placeAgain.name}`, done))
await ask((done) => clientOfB.remove(parent, done))
clientOfB.close()
