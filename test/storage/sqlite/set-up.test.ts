import type { Database } from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { SqliteFenceStore, SqliteLeaseStore } from 'writefence/sqlite'
import { intent, refused } from '../../../src/conformance/fence-destination.ts'
import { open, SqliteDestination, temporaryFile } from '../../support/sqlite-destination.ts'

describe('the version of the tables', () => {
  function withVersion(version: number) {
    const db = open(temporaryFile())
    new SqliteFenceStore(db)
    db.prepare("UPDATE writefence_schema SET version = ? WHERE component = 'fence'").run(version)
    return db
  }

  it.each([
    [2, /fence tables have version 2, and 1 is needed: upgrade writefence/],
    [0, /fence tables have version 0, and 1 is needed: migrate the tables/],
  ])('%i is refused, with advice, and nothing is changed', (version, advice) => {
    const db = withVersion(version)
    const refusal = expect.objectContaining({
      name: 'StoreUnavailableError',
      message: expect.stringMatching(advice),
    })
    expect(() => new SqliteFenceStore(db)).toThrow(refusal)
    expect(db.inTransaction).toBe(false)
    const row = db.prepare('SELECT version FROM writefence_schema').pluck().get()
    expect(row).toBe(version)
  })

  it('is set once, and a second store finds what the first one wrote', async () => {
    const path = temporaryFile()
    await new SqliteDestination(open(path)).write(intent(3, 'x'))
    await refused(new SqliteDestination(open(path)).write(intent(2, 'y')), 'stale')
    const rows = open(path).prepare('SELECT component, version FROM writefence_schema').all()
    expect(rows).toEqual([{ component: 'fence', version: 1 }])
  })
})

describe('setting up the tables', () => {
  const tables = (db: Database) =>
    db.prepare("SELECT name FROM sqlite_schema WHERE name LIKE 'writefence%'").pluck().all()

  /** The handle, and what happens right before it gets the lock. */
  function beforeTheLock(db: Database, happens: () => void): Database {
    return new Proxy(db, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        if (name !== 'exec') return value.bind(target)
        return (sql: string) => {
          if (sql === 'BEGIN IMMEDIATE') happens()
          return target.exec(sql)
        }
      },
    })
  }

  it.each([
    ['fences', SqliteFenceStore],
    ['leases', SqliteLeaseStore],
  ])('of %s, by two processes at once: both find them', (_, Store) => {
    const path = temporaryFile()
    const other = open(path)
    const db = beforeTheLock(open(path), () => new Store(other))
    expect(() => new Store(db)).not.toThrow()
    expect(db.prepare('SELECT version FROM writefence_schema').pluck().all()).toEqual([1])
  })

  it('waits long for the lock, and the handle keeps its own time-out', () => {
    const db = open(temporaryFile())
    const timeouts: unknown[] = []
    const look = () => timeouts.push(db.pragma('busy_timeout', { simple: true }))
    new SqliteFenceStore(beforeTheLock(db, look))
    look()
    expect(timeouts).toEqual([10_000, 20])
  })

  it('takes no lock where they are there', () => {
    const path = temporaryFile()
    new SqliteFenceStore(open(path))
    const db = beforeTheLock(open(path), () => expect.fail('it asked for the lock'))
    expect(() => new SqliteFenceStore(db)).not.toThrow()
  })

  it('that fails leaves none of them, and no transaction', () => {
    const db = open(temporaryFile())
    db.exec('CREATE VIEW writefence_operation AS SELECT 1')
    expect(() => new SqliteFenceStore(db)).toThrow(/^SQLite: views may not be indexed/)
    expect(db.inTransaction).toBe(false)
    expect(tables(db)).toEqual(['writefence_operation'])
  })

  it('whose transaction is lost says what lost it', () => {
    const db = open(temporaryFile())
    new SqliteLeaseStore(db)
    db.exec(`CREATE TRIGGER broken BEFORE INSERT ON writefence_schema
      BEGIN SELECT RAISE(ROLLBACK, 'not today'); END`)
    const before = tables(db)
    expect(() => new SqliteFenceStore(db)).toThrow(/^SQLite: not today$/)
    expect(db.inTransaction).toBe(false)
    expect(tables(db)).toEqual(before)
  })

  it('on a full disk says so', () => {
    const db = open(temporaryFile())
    db.exec('CREATE TABLE mine (a)')
    db.pragma('max_page_count = 4')
    const cause = expect.objectContaining({ code: 'SQLITE_FULL' })
    expect(() => new SqliteFenceStore(db)).toThrow(expect.objectContaining({ cause }))
    expect(tables(db)).toEqual([])
  })
})
