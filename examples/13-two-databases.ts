/**
 * Fences by job over two databases, and a job that moves from one to the other. What is promised is
 * promised for each (scope, job): any number of databases will do, as long as all writes of a job
 * go to the same one, with its records and its data.
 */

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type FencingToken, type Lease, WriteGuard, WriteRefusedError } from 'writefence'
import { openSqlite, SqliteFenceStore, SqliteLeaseStore } from 'writefence/sqlite'

const folder = mkdtempSync(join(tmpdir(), 'writefence-example-'))
const open = (name: string) => openSqlite(join(folder, `${name}.db`))

/** One database with everything of its jobs: here, how often each was credited. */
function openPlace(name: string) {
  const db = open(name)
  db.exec('CREATE TABLE credits (job TEXT PRIMARY KEY, count INTEGER NOT NULL)')
  return { name, db, guard: new WriteGuard(new SqliteFenceStore(db)) }
}

const places = [openPlace('first'), openPlace('second')]
type Place = (typeof places)[number]

/** Leases may be anywhere, and so may the directory: where jobs are that have moved. */
const shared = open('shared')
const leases = new SqliteLeaseStore(shared)
shared.exec('CREATE TABLE moved (job TEXT PRIMARY KEY, place TEXT, generation INTEGER)')
const lookUp = shared.prepare<string, string>('SELECT place FROM moved WHERE job = ?').pluck()
// A mover that was paused does not overwrite what a later one has said.
const say = shared.prepare(`INSERT INTO moved VALUES (?, ?, ?) ON CONFLICT DO UPDATE
  SET place = excluded.place, generation = excluded.generation
  WHERE excluded.generation > generation`)

/** By the digest of scope and job, the same in every process, unless the directory knows better. */
function placeOf(jobId: string, scope = ''): Place {
  const digest = createHash('sha256')
    .update(JSON.stringify([scope, jobId]))
    .digest()
  const name = lookUp.get(jobId)
  const place =
    places.find((each) => each.name === name) ?? places[digest.readUInt32BE() % places.length]
  assert.ok(place)
  return place
}

function credit(token: FencingToken, operationId: string, { db, guard } = placeOf(token.jobId)) {
  const sql = `INSERT INTO credits VALUES (?, 1)
    ON CONFLICT DO UPDATE SET count = count + 1 RETURNING count`
  return guard.write({ token, operationId }, () => db.prepare(sql).pluck().get(token.jobId))
}

async function claim(jobId: string, owner: string): Promise<Lease> {
  await leases.forceRelease(jobId)
  const claimed = await leases.claim({ jobId, owner, ttlMs: 60_000 })
  assert.ok(claimed.status === 'claimed')
  return claimed.lease
}

const refusedAs = (code: string) => (error: unknown) =>
  error instanceof WriteRefusedError && error.code === code

// Each job is in one of the databases, and the laws hold there, whatever goes on in the other one.
const jobIds = Array.from({ length: 40 }, (_, i) => `job-${i}`)
const shares = places.map((place) => jobIds.filter((jobId) => placeOf(jobId) === place))
const [here, there] = shares.map((share) => share[0])
assert.ok(here && there && shares.every((share) => share.length > 10))
for (const jobId of [here, there]) {
  const older = await claim(jobId, 'worker-a')
  assert.equal((await credit(older, 'c-1')).result, 1)
  const newer = await claim(jobId, 'worker-b')
  assert.equal((await credit(newer, 'c-2')).result, 2)
  await assert.rejects(credit(older, 'c-3'), refusedAs('stale'))
  assert.equal((await credit(newer, 'c-1')).status, 'replayed')
}

/** Moves a job. A mover that dies or is paused on the way is followed by another, like a worker. */
async function move(jobId: string, to: Place): Promise<void> {
  // 1. Become its holder, and only then ask where it is.
  const lease = await claim(jobId, 'mover')
  const from = placeOf(jobId)
  if (from !== to) {
    // 2. End it at the old place: from here on nothing of it starts there, of any generation.
    const { inFlight, overdue, unknown } = await from.guard.seal(lease)
    assert.deepEqual([inFlight, overdue, unknown], [0, 0, 0], 'wait, or resolve them first')
    // 3. Copy records and data, as a guarded write: done once, it makes all older tokens stale at
    //    the new place, and it is refused to a mover who has been overtaken.
    to.db.prepare('ATTACH ? AS origin').run(from.db.name)
    await to.guard.write({ token: lease, operationId: `move from ${from.name}` }, (db) => {
      for (const table of ['writefence_operation', 'credits']) {
        const column = table === 'credits' ? 'job' : "scope = '' AND job_id"
        const sql = `INSERT INTO main.${table} SELECT * FROM origin.${table} WHERE ${column} = ?`
        db.prepare(sql).run(jobId)
      }
    })
    to.db.exec('DETACH origin')
    // 4. Only now send it there: before, an old token would have found no fence at the new place.
    say.run(jobId, to.name, lease.generation)
  }
  // 5. The next worker may have it. Its sealed fence stays at the old place for ever.
  await leases.release(lease)
}

const [from, to] = places
assert.ok(from && to)
const before = await claim(here, 'worker-c')
await credit(before, 'c-4')
await move(here, to)
await move(here, to)

// Who worked on it before the move is refused at both places.
await assert.rejects(credit(before, 'c-5', from), refusedAs('stale'))
await assert.rejects(credit(before, 'c-5', to), refusedAs('stale'))

// What was done before the move is recognised after it, and the count goes on.
const after = await claim(here, 'worker-d')
assert.equal(placeOf(here), to)
const again = await credit(after, 'c-4')
assert.deepEqual([again.status, again.result], ['replayed', 3])
assert.equal((await credit(after, 'c-5')).result, 4)

// Whoever still sends it to the old place is told so, and looks it up again.
await assert.rejects(credit(after, 'c-6', from), refusedAs('sealed'))
assert.equal((await credit(after, 'c-6')).result, 5)

for (const db of [shared, ...places.map((place) => place.db)]) db.close()
rmSync(folder, { recursive: true })
