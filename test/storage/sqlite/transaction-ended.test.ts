import type { Database } from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { intent, refused } from '../../../src/conformance/fence-destination.ts'
import { faultyHandle } from '../../support/faulty-handle.ts'
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

const toldSo = {
  'INSERT OR ROLLBACK meets a conflict': { code: 'SQLITE_CONSTRAINT_UNIQUE' },
  'a trigger raises ROLLBACK': { code: 'SQLITE_CONSTRAINT_TRIGGER' },
  'the disk is full': { code: 'SQLITE_FULL' },
  'a conflict whose error is swallowed': { name: 'TypeError' },
  'the callback rolls back': { name: 'TypeError' },
  'the callback rolls back and begins': { name: 'TypeError' },
  'the callback rolls back and throws': { message: 'after the rollback' },
} satisfies Record<keyof typeof culprits, object>
const names = Object.keys(culprits) as (keyof typeof culprits)[]

describe('an effect that ends the transaction is told so', () => {
  it.each(names)('%s', async (how) => {
    const { error } = await runGroup(culprits[how], 2)
    expect(error).toMatchObject(toldSo[how])
  })
})

describe('those who share a transaction that an effect ends', () => {
  it.each(Object.entries({ ...culprits, ...committers }))(
    '%s: they are answered once what they did is durable',
    async (_, ends) => {
      stopMonotonicTime()
      const path = temporaryFile()
      const d = new SqliteDestination(open(path))
      setTraps(d.db)
      const other = open(path)
      const first = d.write(intent(1, 'a')).then(() => d.log(other))
      const culprit = d.guard.write(intent(1, 'x', { jobId: 'x' }), (tx) => void ends(tx))
      await expect(culprit).rejects.toThrow()
      expect(await first).toEqual(['a'])
    },
  )

  it('are store_unavailable with it where what is left of it cannot be rolled back', async () => {
    stopMonotonicTime()
    const path = temporaryFile()
    const { handle, failNext } = faultyHandle(open(path))
    const d = new SqliteDestination(handle)
    const error = Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR' })
    failNext({ sql: 'ROLLBACK', when: 'before', error })
    const ended = await Promise.allSettled([
      d.write(intent(1, 'a')),
      d.guard.write(intent(1, 'x'), (tx) => void tx.exec('ROLLBACK; BEGIN')),
    ])
    const reason = { code: 'store_unavailable', cause: error }
    expect(ended).toMatchObject([{ reason }, { reason }])
    expect((await d.write(intent(1, 'b'))).status).toBe('applied')
    expect(d.log(open(path))).toEqual(['b'])
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
  it.each(names)('%s: the caller is told', (how) => {
    const d = new SqliteDestination()
    setTraps(d.db)
    d.db.exec('BEGIN IMMEDIATE')
    const call = () => d.guard.within(d.db, intent(5, 'x'), (tx) => void culprits[how](tx))
    expect(call).toThrow(expect.objectContaining(toldSo[how]))
    if (d.db.inTransaction) d.db.exec('ROLLBACK')
    expect(d.log()).toEqual([])
  })
})
