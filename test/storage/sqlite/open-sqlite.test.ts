import Database from 'better-sqlite3'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { openSqlite } from 'writefence/sqlite'
import { open, temporaryFile } from '../../support/sqlite-destination.ts'

afterEach(() => vi.restoreAllMocks())

/** Has the first pragma, which asks for the write-ahead log, fail so many times, without pauses. */
function failing(error: Error, times: number) {
  const pragma = vi.spyOn(Database.prototype, 'pragma')
  for (let i = 0; i < times; i += 1) {
    pragma.mockImplementationOnce(() => {
      throw error
    })
  }
  return {
    pragma,
    pauses: vi.spyOn(Atomics, 'wait').mockReturnValue('timed-out'),
    closed: vi.spyOn(Database.prototype, 'close'),
  }
}

describe('a database without a path', () => {
  it.each([undefined, null, '', ' \t', 7, {}, Buffer.alloc(0)])('%j is not opened', (path) => {
    const { pragma } = failing(new Error('opened'), 1)
    const says = "openSqlite needs the path of a file, or ':memory:' for a test"
    expect(() => openSqlite(path as never)).toThrow(new TypeError(says))
    expect(pragma).not.toHaveBeenCalled()
  })

  it('is in memory where that is what is asked for', () => {
    expect(open(':memory:').memory).toBe(true)
  })
})

describe('a new file that several processes open at once', () => {
  const locked = new Database.SqliteError('database is locked', 'SQLITE_BUSY_RECOVERY')

  it('is asked for its log again where another one has the lock', () => {
    const { pauses, closed } = failing(locked, 100)
    const db = open(temporaryFile())
    expect(db.pragma('journal_mode', { simple: true })).toBe('wal')
    expect(pauses).toHaveBeenCalledTimes(100)
    expect(closed).not.toHaveBeenCalled()
  })

  it('is given up where the lock does not go away, and no handle is left open', () => {
    const { pragma, closed } = failing(locked, 200)
    expect(() => openSqlite(temporaryFile())).toThrow(locked)
    expect(pragma).toHaveBeenCalledTimes(101)
    expect(closed).toHaveBeenCalledOnce()
  })

  it.each([
    ['that is no lock', new Database.SqliteError('disk I/O error', 'SQLITE_IOERR')],
    ["that is not SQLite's", Object.assign(new Error('busy'), { code: 'SQLITE_BUSY' })],
  ])('is given up at once for an error %s', (_, error) => {
    const { pragma, closed } = failing(error, 1)
    expect(() => openSqlite(temporaryFile())).toThrow(error)
    expect(pragma).toHaveBeenCalledOnce()
    expect(closed).toHaveBeenCalledOnce()
  })

  it('is waited for by SQLite itself meanwhile, longer than by the handle later', () => {
    let timeout: unknown
    vi.spyOn(Database.prototype, 'pragma').mockImplementationOnce(function (
      this: Database.Database,
    ) {
      timeout = this.prepare('PRAGMA busy_timeout').pluck().get()
      return 'wal'
    })
    const db = open(temporaryFile())
    expect(timeout).toBe(10_000)
    expect(db.pragma('busy_timeout', { simple: true })).toBe(20)
  })
})
