/**
 * Tokens of another issuer. Whatever gives out a number that rises with each new holder can stand
 * in for the lease store. Here is what holds for all of them; the examples from 08 on are about one
 * issuer each, and docs/issuers.md about all.
 */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type FencingToken, MAX_GENERATION } from 'writefence'
import { guard, write, written } from './issuers/destination.ts'

/** `number`: as the issuer spells it. 64-bit numbers mostly come as strings. */
const tokenOf = (
  jobId: string,
  number: string | bigint | number,
  leaseId?: string,
): FencingToken => ({
  jobId,
  generation: Number(number),
  leaseId,
})

// The numbers need not be neighbours, only rise.
const oldLeader = tokenOf('config', '80412', randomUUID())
const newLeader = tokenOf('config', '80977', randomUUID())
assert.equal(await write(oldLeader, 'from the old leader'), 'written')
assert.equal(await write(newLeader, 'from the new leader'), 'written')
assert.equal(await write(oldLeader, 'late'), 'stale')

// A leaseId is optional, but for all or for none: absent equals only absent. Two issuers that hand
// out the same number show at once where there is one.
assert.equal(await write(tokenOf('config', '80977', randomUUID()), 'from elsewhere'), 'conflict')
assert.equal(await write(tokenOf('config', '80977'), 'from nobody'), 'conflict')
assert.equal(await write(tokenOf('bare', '80977'), 'from here'), 'written')
assert.equal(await write(tokenOf('bare', '80977'), 'from elsewhere'), 'written') // two holders

// What is not exact as a number is refused. `Number` rounds from 2^53 on, and generations end
// before that: nothing that was rounded is accepted.
for (const refused of ['9007199254740993', 2n ** 63n, MAX_GENERATION + 1, '0', '-3', '1.5', 'x']) {
  await assert.rejects(write(tokenOf('config', refused), 'x'), RangeError)
}

// Numbers without an order cannot be used at all. ------------------------------------------------

// The random value of a lock in Redis (Redlock). Two holders, two values; the second is larger, or
// smaller, as it happens.
const drawn = ['a3f0c1d2e4b5', '1b90aa07c3d4'].map((hex) => BigInt(`0x${hex}`))
const [valueOfA = 0n, valueOfB = 0n] = drawn
assert.equal(await write(tokenOf('random', valueOfA), 'A'), 'written')
assert.equal(await write(tokenOf('random', valueOfB), 'B'), 'stale') // a good one, for ever
assert.equal(await write(tokenOf('random', valueOfA), 'A, late'), 'written') // a stale one

// The time at which a holder got the lock, by its own clock: B came a minute after A, and its clock
// is five minutes behind.
const noon = Date.UTC(2026, 0, 1, 12)
assert.equal(await write(tokenOf('clock', noon), 'A'), 'written')
assert.equal(await write(tokenOf('clock', noon + 60_000 - 300_000), 'B'), 'stale') // a good one
assert.equal(await write(tokenOf('clock', noon), 'A, late'), 'written') // a stale one

// An issuer that has gone back: restored from a backup, or its key deleted. Its numbers are below
// the fence, and good writes are refused. A fence never falls; so the numbers are raised, by an
// offset that all workers are given, and that only ever grows.
const restored = 80_500n
assert.equal(await write(tokenOf('config', restored, randomUUID()), 'restored'), 'stale')
const state = await guard.inspect('config')
const offset = BigInt(state?.highestGeneration ?? 0)
const raised = tokenOf('config', offset + restored, randomUUID())
assert.equal(await write(raised, 'restored'), 'written')
assert.equal(await write(newLeader, 'late'), 'stale')

assert.deepEqual(written('config'), ['from the old leader', 'from the new leader', 'restored'])
