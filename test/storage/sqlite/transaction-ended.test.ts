import type { Database } from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { intent, refused } from '../../../src/conformance/fence-destination.ts'
import {
  open,
  published,
  SqliteDestination,
  stopMonotonicTime,
  temporaryFile,
} from '../../support/sqlite-destination.ts'

/** Effects that end the transaction of their whole group. */
const culprits = {
  'INSERT OR ROLLBACK meets a conflict': (tx: Database) =>
    tx.exec("INSERT OR ROLLBACK INTO unique_text VALUES ('taken')"),
  'a trigger raises ROLLBACK': (tx: Database) => tx.exec("INSERT INTO guarded VALUES ('x')"),
  'the disk is full': (tx: Database) => {
    tx.exec('INSERT INTO big VALUES (randomblob(4000000))')
  },
  'a conflict whose error is swallowed': (tx: Database) => {
    try {
      tx.exec("INSERT OR ROLLBACK INTO unique_text VALUES ('taken')")
    } catch {}
  },
  'the callback rolls back': (tx: Database) => tx.exec('ROLLBACK'),
  'the callback rolls back and begins': (tx: Database) => tx.exec('ROLLBACK; BEGIN'),
  'the callback rolls back and throws': (tx: Database) => {
    tx.exec('ROLLBACK')
    throw new Error('after the rollback')
  },
}

const committers = {
  'the callback commits': (tx: Database) => tx.exec('COMMIT'),
  'the callback commits and begins': (tx: Database) => tx.exec('COMMIT; BEGIN'),
  'the callback commits, begins and writes': (tx: Database) =>
    tx.exec("COMMIT; BEGIN; INSERT INTO log VALUES ('lost')"),
  'the callback commits and throws': (tx: Database) => {
    tx.exec('COMMIT')
    throw new Error('after the commit')
  },
}

/** What the effects above run into. */
function setTraps(db: Database): void {
  db.exec(`CREATE TABLE unique_text (text TEXT UNIQUE); INSERT INTO unique_text VALUES ('taken');
    CREATE TABLE guarded (text TEXT); CREATE TABLE big (data BLOB);
    CREATE TRIGGER no BEFORE INSERT ON guarded BEGIN SELECT RAISE(ROLLBACK, 'not today'); END`)
  db.pragma('max_page_count = 200')
}

const positions = { first: 0, 'in the middle': 2, last: 4, alone: -1 }

function everyCase(effects: Record<string, (tx: Database) => unknown>) {
  return Object.entries(effects).flatMap(([how, ends]) =>
    Object.entries(positions).map(([where, at]) => ({ how, ends, where, at })),
  )
}

/** A group of five writes, or of one, of which one ends the transaction. */
async function runGroup(ends: (tx: Database) => unknown, at: number) {
  stopMonotonicTime()
  const path = temporaryFile()
  const d = new SqliteDestination(open(path))
  setTraps(d.db)
  const faults = published('fault')
  let runs = 0
  const culprit = () =>
    d.guard.write(intent(5, 'ends', { jobId: 'culprit' }), (tx) => {
      runs += 1
      d.appends('culprit')(tx)
      ends(tx)
    })
  const names = at < 0 ? ['ends'] : ['a', 'b', 'c', 'd', 'e']
  const calls = names.map((name, i) =>
    i === Math.max(at, 0) ? culprit() : d.write(intent(1, name, { jobId: name })),
  )
  const ended = await Promise.allSettled(calls)
  const others = names.filter((_, i) => i !== Math.max(at, 0))
  const statuses = ended.map((one) => (one.status === 'fulfilled' ? one.value.status : 'rejected'))
  const rest = statuses.filter((_, i) => i !== Math.max(at, 0))
  const [spoiled] = ended.filter((one) => one.status === 'rejected')
  return { d, path, faults, runs: () => runs, others, rest, error: spoiled?.reason as Error }
}

describe.each(everyCase(culprits))('$how, $where in its group', ({ ends, at }) => {
  it('the others are applied once, the culprit not at all, and its fence stays', async () => {
    const { d, path, others, rest, runs, error, faults } = await runGroup(ends, at)
    expect(rest).toEqual(others.map(() => 'applied'))
    expect(error).toBeInstanceOf(Error)
    expect(d.db.inTransaction).toBe(false)
    // Another connection sees only what is durable: nothing may be left to a later commit.
    expect(d.log(open(path)).toSorted()).toEqual(others)
    expect(runs()).toBe(1)
    await refused(d.write(intent(4, 'late', { jobId: 'culprit' })), 'stale')
    const again = await d.write(intent(5, 'ends', { jobId: 'culprit' }))
    expect(again.status).toBe('applied')
    expect(faults.map(({ fault }) => fault)).toEqual(['transaction_ended_by_callback'])
  })
})

describe.each(everyCase(committers))('$how, $where in its group', ({ ends, at }) => {
  it('the others are applied once, and what the culprit did has its record', async () => {
    const { d, path, others, rest, runs, error, faults } = await runGroup(ends, at)
    expect(rest).toEqual(others.map(() => 'applied'))
    expect(error.message).toMatch(/has ended the transaction|after the commit/)
    expect(d.db.inTransaction).toBe(false)
    expect(d.log(open(path)).toSorted()).toEqual([...others, 'culprit'].toSorted())
    expect(runs()).toBe(1)
    await refused(d.write(intent(4, 'late', { jobId: 'culprit' })), 'stale')
    const again = await d.write(intent(5, 'ends', { jobId: 'culprit' }))
    expect(again).toMatchObject({ status: 'replayed', result: undefined })
    expect(faults.map(({ fault }) => fault)).toEqual(['transaction_ended_by_callback'])
  })
})

describe('an effect that ends the transaction is told so', () => {
  it.each([
    ['INSERT OR ROLLBACK meets a conflict', { code: 'SQLITE_CONSTRAINT_UNIQUE' }],
    ['the disk is full', { code: 'SQLITE_FULL' }],
    ['the callback rolls back', { name: 'TypeError' }],
    ['the callback rolls back and throws', { message: 'after the rollback' }],
    ['a conflict whose error is swallowed', { name: 'TypeError' }],
  ] as const)('%s', async (how, expected) => {
    const { error } = await runGroup(culprits[how], 2)
    expect(error).toMatchObject(expected)
  })
})

describe('an effect that rolls back, and then dallies', () => {
  it('does not write its result over what another connection has applied meanwhile', async () => {
    const path = temporaryFile()
    const d = new SqliteDestination(open(path))
    const other = new SqliteDestination(open(path))
    const call = d.guard.write(intent(1, 'x'), (tx) => {
      tx.exec('ROLLBACK')
      other.guard.writeSync(intent(1, 'x'), other.appends('x', 'theirs'))
      return 'mine'
    })
    await expect(call).rejects.toThrow(TypeError)
    expect(await d.write(intent(1, 'x'))).toMatchObject({ status: 'replayed', result: 'theirs' })
  })
})

describe('writeSync', () => {
  it.each(Object.entries({ ...culprits, ...committers }))('%s', (_, ends) => {
    const d = new SqliteDestination()
    setTraps(d.db)
    expect(() => d.guard.writeSync(intent(5, 'x'), (tx) => void ends(tx))).toThrow()
    expect(d.db.inTransaction).toBe(false)
    expect(() => d.guard.writeSync(intent(4, 'y'), d.appends('late'))).toThrow(/stale/)
    expect(d.log()).toEqual([])
  })
})

describe('within', () => {
  it.each(Object.entries(culprits))('%s: the caller is told', (_, ends) => {
    const d = new SqliteDestination()
    setTraps(d.db)
    d.db.exec('BEGIN IMMEDIATE')
    expect(() => d.guard.within(d.db, intent(5, 'x'), (tx) => void ends(tx))).toThrow()
    if (d.db.inTransaction) d.db.exec('ROLLBACK')
    expect(d.log()).toEqual([])
  })
})
