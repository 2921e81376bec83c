/**
 * PostgreSQL: the generation is taken from a sequence, by whoever has won an advisory lock.
 *
 * Runs against a real PostgreSQL (PGHOST, PGPORT, PGUSER, PGDATABASE, or the local one). The lease
 * store of writefence/postgres is the better choice where it can be used: its leases run out.
 */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { write, written } from './issuers/destination.ts'
import {
  acquire,
  address,
  connect,
  next,
  pidOf,
  release,
  terminate,
  tokenOfSequence,
} from './issuers/postgres.ts'
import { reached } from './issuers/reached.ts'

const a = await reached(`PostgreSQL at ${address.host}:${address.port}`, connect)
const b = await connect()
const operator = await connect()
const schema = `writefence_${randomUUID().replaceAll('-', '')}`
await operator.query(`CREATE SCHEMA ${schema}`)

// One sequence for all jobs will do: gaps are fine. It ends where generations do.
const report = `${schema}.report`
await operator.query(`CREATE SEQUENCE ${report} MAXVALUE 999999999999999 NO CYCLE CACHE 1`)

const tokenOfA = tokenOfSequence('report', await acquire(a, report), randomUUID())
assert.equal(await write(tokenOfA, 'A'), 'written')

// B is waiting. An advisory lock does not run out: as long as A's connection is up, A has the lock,
// even if it is stopped. Somebody ends the connection, and A does not know.
const waiting = acquire(b, report)
await terminate(operator, await pidOf(a))
const tokenOfB = tokenOfSequence('report', await waiting, randomUUID())
assert(tokenOfB.generation > tokenOfA.generation)
assert.equal(await write(tokenOfB, 'B'), 'written')
assert.equal(await write(tokenOfA, 'A, late'), 'stale')
assert.deepEqual(written('report'), ['A', 'B'])
await release(b, report)

// What goes wrong with a number that is taken otherwise. -----------------------------------------

const c = await connect()
const d = await connect()
const bad = (jobId: string, row: { readonly nextval: string }) => ({
  jobId,
  generation: Number(row.nextval),
})

// First the number, then the lock: C has the lower number, and gets the lock after D.
const early = await next(c, report)
const later = await acquire(d, report)
assert.equal(await write(bad('number first', later), 'D'), 'written')
await release(d, report)
await acquire(c, report)
assert.equal(await write(bad('number first', early), 'C'), 'stale') // a good one, for ever
await release(c, report)

// A cache: every connection is given ten numbers at once. C holds 1 to 10 and D 11 to 20, whoever
// of them comes first.
const cached = `${schema}.cached`
await operator.query(`CREATE SEQUENCE ${cached} CACHE 10`)
await next(c, cached)
const eleven = await acquire(d, cached)
assert.equal(await write(bad('cache', eleven), 'D'), 'written')
await release(d, cached)
const two = await acquire(c, cached)
assert.deepEqual([eleven.nextval, two.nextval], ['11', '2'])
assert.equal(await write(bad('cache', two), 'C'), 'stale') // a good one, for ever
assert.equal(await write(bad('cache', eleven), 'D, late'), 'written') // a stale one
await release(c, cached)

// A sequence that is set back, by hand or with a backup: C and D are given one number.
const restored = `${schema}.restored`
await operator.query(`CREATE SEQUENCE ${restored}`)
const before = await acquire(c, restored)
await release(c, restored)
await operator.query(`ALTER SEQUENCE ${restored} RESTART`)
const after = await acquire(d, restored)
assert.equal(after.nextval, before.nextval)
assert.equal(await write(bad('set back', before), 'C'), 'written')
assert.equal(await write(bad('set back', after), 'D'), 'written')
assert.equal(await write(bad('set back', before), 'C, late'), 'written') // a stale one
// With leaseIds it shows.
assert.equal(await write(tokenOfSequence('shown', before, randomUUID()), 'C'), 'written')
assert.equal(await write(tokenOfSequence('shown', after, randomUUID()), 'D'), 'conflict')

await operator.query(`DROP SCHEMA ${schema} CASCADE`)
await Promise.all([b, c, d, operator].map((client) => client.end()))
