import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { StoreUnavailableError, WriteGuard } from 'writefence'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'
import { failure, intent, refused } from '../../../src/conformance/fence-destination.ts'
import { faultyHandle } from '../../support/faulty-handle.ts'
import { open, SqliteDestination, temporaryFile } from '../../support/sqlite-destination.ts'

describe('openSqlite', () => {
  it('keeps a write-ahead log, syncs it at each commit, and checks foreign keys', () => {
    const path = temporaryFile()
    open(path)
    // The driver's own default for a file that has such a log already is less.
    const db = open(path)
    expect(db.pragma('journal_mode', { simple: true })).toBe('wal')
    expect(db.pragma('synchronous', { simple: true })).toBe(2)
    expect(db.pragma('foreign_keys', { simple: true })).toBe(1)
    expect(db.pragma('busy_timeout', { simple: true })).toBe(20)
  })

  it('takes its busy time-out, and refuses one that is none', () => {
    const db = openSqlite(temporaryFile(), { busyTimeoutMs: 0 })
    expect(db.pragma('busy_timeout', { simple: true })).toBe(0)
    db.close()
    expect(() => openSqlite(':memory:', { busyTimeoutMs: -1 })).toThrow(/busyTimeoutMs/)
  })

  it('R110: refuses a file that cannot have a write-ahead log, and leaves no handle open', () => {
    const path = temporaryFile()
    const close = vi.spyOn(Database.prototype, 'close')
    const pragma = vi.spyOn(Database.prototype, 'pragma').mockReturnValueOnce('delete')
    expect(() => openSqlite(path)).toThrow(/write-ahead log/)
    expect(close).toHaveBeenCalledOnce()
    pragma.mockRestore()
    close.mockRestore()
  })

  it('opens a database in memory, for tests', async () => {
    const d = new SqliteDestination(open(':memory:'))
    expect((await d.write(intent(1, 'x'))).status).toBe('applied')
  })
})

describe("a handle of the user's own", () => {
  it('may give out safe integers', async () => {
    const db = open(temporaryFile())
    db.defaultSafeIntegers(true)
    const d = new SqliteDestination(db, { now: () => 1_700_000_000_000 })
    await d.guard
      .effect(intent(3, 'x'), async () => Promise.reject(new Error('boom')))
      .catch(() => {})
    expect(await d.guard.inspect('job')).toMatchObject({ highestGeneration: 3, unknown: 1 })
    expect(await d.guard.judge(intent(2))).toMatchObject({ code: 'stale', highestGeneration: 3 })
    await refused(d.write(intent(2)), 'stale', { highestGeneration: 3 })
    expect((await d.write(intent(4, 'y'))).highestGeneration).toBe(4)
    expect(await d.guard.prune({ olderThanMs: 0 })).toEqual({ pruned: 1 })
    expect(db.prepare('SELECT 1 AS one').get()).toEqual({ one: 1n })
  })

  it('keeps its busy time-out', () => {
    const db = open(temporaryFile())
    db.pragma('busy_timeout = 1234')
    new SqliteFenceStore(db)
    expect(db.pragma('busy_timeout', { simple: true })).toBe(1234)
  })

  it('stays open when the store is closed', async () => {
    const d = new SqliteDestination()
    await d.guard.close()
    expect(d.db.open).toBe(true)
  })

  it('must not be inside a transaction when the store is made', () => {
    const db = open()
    db.exec('BEGIN')
    expect(() => new SqliteFenceStore(db)).toThrow(TypeError)
    expect(() => new SqliteFenceStore(db)).toThrow('inside a transaction of its handle')
    db.exec('COMMIT')
    expect(() => new SqliteFenceStore(db)).not.toThrow()
  })

  it('has a bound for its stores to wait, which is named where it is none', () => {
    for (const busyTimeoutMs of [0, 1.5, '5000' as never]) {
      expect(() => new SqliteFenceStore(open(), { busyTimeoutMs })).toThrow(/^busyTimeoutMs must/)
    }
  })

  it('may be shared by two stores', async () => {
    const d = new SqliteDestination()
    const second = new SqliteDestination(d.db)
    const outcomes = await Promise.all([
      d.write(intent(1, 'a')),
      second.write(intent(1, 'b')),
      d.write(intent(1, 'c')),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['applied', 'applied', 'applied'])
    await refused(second.write(intent(1, 'a', { leaseId: 'b' })), 'conflict')
  })
})

describe('durability', () => {
  const warnings: unknown[] = []
  beforeEach(() => {
    warnings.length = 0
    vi.spyOn(process, 'emitWarning').mockImplementation((...args) => void warnings.push(args))
  })
  afterEach(() => vi.restoreAllMocks())

  function handle(...pragmas: string[]) {
    const db = open(temporaryFile())
    // The driver keeps a journal unless it is told that this is meant.
    db.unsafeMode()
    for (const pragma of pragmas) db.pragma(pragma)
    return db
  }

  it.each([
    ['synchronous = NORMAL', 'journal_mode wal, synchronous 1'],
    ['synchronous = OFF', 'journal_mode wal, synchronous 0'],
    ['journal_mode = OFF', 'journal_mode off, synchronous 2'],
    ['journal_mode = MEMORY', 'journal_mode memory, synchronous 2'],
  ])('a handle with %s gets a process warning with a code, once', (pragma, settings) => {
    const db = handle(pragma)
    new SqliteFenceStore(db)
    new SqliteFenceStore(db)
    const text =
      `the SQLite handle of ${db.name} (${settings}) can lose committed fences and leases at a` +
      ' power cut: use openSqlite, or PRAGMA synchronous = FULL'
    const expected = { type: 'WritefenceWarning', code: 'WRITEFENCE_DURABILITY' }
    expect(warnings).toEqual([[text, expected]])
    new SqliteFenceStore(handle(pragma))
    expect(warnings).toHaveLength(2)
  })

  it.each([['synchronous = FULL'], ['synchronous = EXTRA'], ['journal_mode = DELETE']])(
    'a handle with %s gets none',
    (pragma) => {
      new SqliteFenceStore(handle(pragma))
      expect(warnings).toEqual([])
    },
  )

  it('a database in memory gets none: it promises nothing', () => {
    const db = open(':memory:')
    db.pragma('synchronous = OFF')
    new SqliteFenceStore(db)
    expect(warnings).toEqual([])
  })
})

describe('a database that cannot be written to', () => {
  it('makes writes store_unavailable, and still answers what is refused', async () => {
    const path = temporaryFile()
    const first = new SqliteDestination(open(path))
    await first.write(intent(5, 'x'))
    const readonly = new Database(path, { readonly: true })
    readonly.pragma('synchronous = FULL')
    const guard = new WriteGuard(new SqliteFenceStore(readonly))
    const write = (generation: number) => guard.write(intent(generation, 'y'), () => 'never kept')
    expect(await failure(write(6))).toBeInstanceOf(StoreUnavailableError)
    await refused(write(4), 'stale')
    expect(await guard.inspect('job')).toMatchObject({ highestGeneration: 5 })
    readonly.close()
  })

  it('is refused where its tables would have to be made', () => {
    const path = temporaryFile()
    new Database(path).exec('CREATE TABLE t (a)').close()
    const readonly = new Database(path, { readonly: true })
    expect(() => new SqliteFenceStore(readonly)).toThrow(StoreUnavailableError)
    readonly.close()
  })

  it('is refused where its handle is closed', () => {
    const db = new Database(':memory:')
    db.close()
    expect(() => new SqliteFenceStore(db)).toThrow(StoreUnavailableError)
  })
})

describe('tables that the store cannot read', () => {
  it('are store_unavailable at once: a lock would not help', async () => {
    const { handle, failNext } = faultyHandle(open())
    const d = new SqliteDestination(handle)
    failNext({ sql: 'BEGIN IMMEDIATE', when: 'before', error: new Error('asked for the lock') })
    d.db.exec('DROP TABLE writefence_fence')
    const message = expect.stringContaining('no such table')
    expect(await failure(d.guard.inspect('job'))).toMatchObject({ cause: { message } })
  })
})

describe('tables that the store cannot write to', () => {
  it.each(['INSERT ON writefence_operation', 'INSERT ON writefence_fence'])(
    '%s fails: store_unavailable, and the effect is not blamed, nor kept',
    async (what) => {
      const d = new SqliteDestination()
      d.db.exec(`CREATE TRIGGER broken BEFORE ${what} BEGIN SELECT RAISE(ABORT, 'broken'); END`)
      const call = d.write(intent(1, 'x'))
      expect(await failure(call)).toMatchObject({ code: 'store_unavailable', retryable: true })
      d.db.exec('BEGIN')
      const joined = () => d.guard.within(d.db, intent(1, 'x'), d.appends('x'))
      expect(joined).toThrow(StoreUnavailableError)
      d.db.exec('COMMIT; DROP TRIGGER broken')
      expect(d.log()).toEqual([])
      expect(await d.guard.inspect('job')).toBeUndefined()
      expect((await d.write(intent(1, 'x'))).status).toBe('applied')
    },
  )
})
