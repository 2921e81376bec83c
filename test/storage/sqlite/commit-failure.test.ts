import { describe, expect, it } from 'vitest'
import { StoreUnavailableError } from 'writefence'
import type { SqliteStoreOptions } from 'writefence/sqlite'
import { failure, intent, refused } from '../../../src/conformance/fence-destination.ts'
import { faultyHandle } from '../../support/faulty-handle.ts'
import {
  open,
  published,
  SqliteDestination,
  stopMonotonicTime,
  temporaryFile,
} from '../../support/sqlite-destination.ts'

const busy = Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' })
const ioError = Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC' })

function faulty(options: SqliteStoreOptions = {}) {
  const advance = stopMonotonicTime()
  const path = temporaryFile()
  const { handle, failNext } = faultyHandle(open(path))
  const d = new SqliteDestination(handle, options)
  const group = () =>
    Promise.all(['a', 'b', 'c'].map((id) => failure(d.write(intent(1, id, { jobId: id })))))
  return { d, group, failNext, advance, durable: () => d.log(open(path)) }
}

describe('a COMMIT that fails', () => {
  it('fails its group as store_unavailable, and nothing of it lands later', async () => {
    const { d, group, failNext, durable } = faulty()
    failNext({ sql: 'COMMIT', when: 'before', error: ioError })
    for (const error of await group()) {
      expect(error).toBeInstanceOf(StoreUnavailableError)
      expect(error).toMatchObject({ retryable: true, cause: ioError })
    }
    expect(d.db.inTransaction).toBe(false)
    expect((await d.write(intent(1, 'next'))).status).toBe('applied')
    expect(durable()).toEqual(['next'])
    expect((await d.write(intent(1, 'a', { jobId: 'a' }))).status).toBe('applied')
  })

  it('is over with its rollback: the next transaction of the user is his own', async () => {
    const { d, group, failNext, durable } = faulty()
    failNext({ sql: 'COMMIT', when: 'before', error: ioError })
    await group()
    d.db.exec("BEGIN; INSERT INTO log VALUES ('user')")
    const write = d.write(intent(1, 'next'))
    for (let i = 0; i < 3; i += 1) await new Promise((resolve) => setImmediate(resolve))
    expect([d.log(), d.db.inTransaction]).toEqual([['user'], true])
    d.db.exec('COMMIT')
    expect((await write).status).toBe('applied')
    expect(durable()).toEqual(['user', 'next'])
  })

  it('and whose answer is lost: not known, and a retry is replayed', async () => {
    const { d, group, failNext, durable } = faulty()
    failNext({ sql: 'COMMIT', when: 'after', error: ioError })
    for (const error of await group()) expect(error).toBeInstanceOf(StoreUnavailableError)
    expect(durable()).toEqual(['a', 'b', 'c'])
    const again = await d.write(intent(1, 'a', { jobId: 'a' }))
    expect(again).toMatchObject({ status: 'replayed', result: 'a' })
  })

  it('is not retryable for a write without an operation id', async () => {
    const { d, failNext } = faulty()
    failNext({ sql: 'COMMIT', when: 'before', error: ioError })
    expect(await failure(d.write(intent(1)))).toMatchObject({ retryable: false, cause: ioError })
  })

  it('and whose rollback fails too leaves nothing to the next commit', async () => {
    const { d, group, failNext, durable } = faulty()
    const faults = published('fault')
    failNext({ sql: 'COMMIT', when: 'before', error: ioError })
    failNext({ sql: 'ROLLBACK', when: 'before', error: ioError })
    for (const error of await group()) expect(error).toBeInstanceOf(StoreUnavailableError)
    expect(d.db.inTransaction).toBe(true)
    expect(faults).toContainEqual({ fault: 'store_unavailable', error: ioError })
    expect((await d.write(intent(1, 'next'))).status).toBe('applied')
    expect(durable()).toEqual(['next'])
  })

  it.each([[['a']], [['a', 'b']]])(
    'because of a lock is tried again, for the whole group (%j)',
    async (ids) => {
      const { d, failNext, durable } = faulty()
      failNext({ sql: 'COMMIT', when: 'before', error: busy })
      const seen: string[][] = []
      const writes = ids.map((id) =>
        d.guard.write(intent(1, id), (tx) => {
          seen.push(durable())
          d.appends(id)(tx)
        }),
      )
      for (const { status } of await Promise.all(writes)) expect(status).toBe('applied')
      expect(durable()).toEqual(ids)
      expect(seen).toEqual([...ids, ...ids].map(() => []))
    },
  )

  it('because of a lock leaves the handle to its user until the next try', async () => {
    const { d, failNext } = faulty()
    failNext({ sql: 'COMMIT', when: 'before', error: busy })
    const write = d.write(intent(1, 'a'))
    await new Promise((resolve) => setImmediate(resolve))
    expect(d.db.inTransaction).toBe(false)
    expect(d.log()).toEqual([])
    expect((await write).status).toBe('applied')
  })

  it('because of a lock is withdrawn when its time is over, and says what held it', async () => {
    const { d, failNext, advance } = faulty({ busyTimeoutMs: 30 })
    failNext({ sql: 'COMMIT', when: 'before', error: busy })
    const call = d.guard.write(intent(1, 'a'), (tx) => {
      advance(30)
      d.appends('a')(tx)
    })
    const message = 'the store was busy for 30 ms; the call was withdrawn'
    expect(await failure(call)).toMatchObject({ message, cause: busy })
    expect(d.log()).toEqual([])
  })

  it('because of a lock, and cannot be rolled back, is tried no more', async () => {
    const { d, failNext, group, durable } = faulty()
    failNext({ sql: 'COMMIT', when: 'before', error: busy })
    failNext({ sql: 'ROLLBACK', when: 'before', error: ioError })
    for (const error of await group()) expect(error).toMatchObject({ cause: ioError })
    expect(d.db.inTransaction).toBe(false)
    expect(durable()).toEqual([])
  })

  it('for what is left when its only effect has been left out is given up', async () => {
    const { d, failNext, durable } = faulty()
    const error = Object.assign(new Error('FOREIGN KEY'), { code: 'SQLITE_CONSTRAINT_FOREIGNKEY' })
    failNext({ sql: 'COMMIT', when: 'before', error })
    failNext({ sql: 'COMMIT', when: 'before', error })
    const call = failure(d.write(intent(1, 'a')))
    expect(await call).toMatchObject({ code: 'store_unavailable', cause: error })
    expect(durable()).toEqual([])
  })
})

describe('a BEGIN that fails', () => {
  it('refuses all that wait, and the next ones go on', async () => {
    const { d, group, failNext, durable } = faulty()
    failNext({ sql: 'BEGIN IMMEDIATE', when: 'before', error: ioError })
    for (const error of await group()) {
      expect(error).toBeInstanceOf(StoreUnavailableError)
      expect(error).toMatchObject({ cause: ioError })
    }
    expect((await d.write(intent(1, 'next'))).status).toBe('applied')
    expect(durable()).toEqual(['next'])
  })

  it.each(['SQLITE_BUSY', 'SQLITE_LOCKED_SHAREDCACHE'])(
    'because of a lock (%s) is tried again',
    async (code) => {
      const { d, failNext, durable } = faulty()
      const error = Object.assign(new Error('database is locked'), { code })
      failNext({ sql: 'BEGIN IMMEDIATE', when: 'before', error })
      expect((await d.write(intent(1, 'a'))).status).toBe('applied')
      expect(durable()).toEqual(['a'])
    },
  )
})

describe('a statement that fails on the calling stack', () => {
  it.each(['BEGIN IMMEDIATE', 'COMMIT'])(
    '%s: writeSync throws store_unavailable, and the next one goes on',
    (sql) => {
      const { d, failNext, durable } = faulty()
      const write = () => d.guard.writeSync(intent(1, 'a'), d.appends('a'))
      failNext({ sql, when: 'before', error: ioError })
      expect(write).toThrow(expect.objectContaining({ code: 'store_unavailable', cause: ioError }))
      expect(write().status).toBe('applied')
      expect(durable()).toEqual(['a'])
    },
  )
})

describe('a commit that fails for what one effect left behind', () => {
  function withDeferredKey() {
    stopMonotonicTime()
    const path = temporaryFile()
    const d = new SqliteDestination(open(path))
    d.db.exec(`CREATE TABLE parent (id INTEGER PRIMARY KEY);
      CREATE TABLE child (id INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED)`)
    const orphan = () =>
      d.guard.write(intent(5, 'orphan', { jobId: 'orphan' }), (tx) => {
        d.appends('orphan')(tx)
        tx.exec('INSERT INTO child VALUES (7)')
      })
    return { d, orphan, durable: () => d.log(open(path)) }
  }

  it('spoils only that one: the others are applied once, its fence stays', async () => {
    const { d, orphan, durable } = withDeferredKey()
    const bad = orphan()
    const good = ['a', 'b', 'c'].map((id) => d.write(intent(1, id, { jobId: id })))
    expect(await failure(bad)).toMatchObject({ code: 'SQLITE_CONSTRAINT_FOREIGNKEY' })
    expect((await Promise.all(good)).map(({ status }) => status)).toEqual(good.map(() => 'applied'))
    expect(durable()).toEqual(['a', 'b', 'c'])
    await refused(d.write(intent(4, 'late', { jobId: 'orphan' })), 'stale')
    expect((await d.write(intent(5, 'orphan', { jobId: 'orphan' }))).status).toBe('applied')
  })

  it('is not shared with what comes while the others are tried again', async () => {
    const { d, orphan, durable } = withDeferredKey()
    const later: Promise<unknown>[] = []
    let runs = 0
    const laterWrite = () =>
      d.guard.write(intent(1, 'later'), (tx) => {
        runs += 1
        return d.appends('later', 1)(tx)
      })
    const first = d.guard.write(intent(1, 'first'), (tx) => {
      // Once the group is over, and before its members have their next turn.
      if (later.length === 0) queueMicrotask(() => later.push(laterWrite()))
      return d.appends('first', 1)(tx)
    })
    expect(await failure(orphan())).toMatchObject({ code: 'SQLITE_CONSTRAINT_FOREIGNKEY' })
    await Promise.all([first, ...later])
    expect(runs).toBe(1)
    expect(durable()).toEqual(['first', 'later'])
  })

  it('spoils only itself where it is alone, or two of them are', async () => {
    const { d, orphan, durable } = withDeferredKey()
    const expected = { code: 'SQLITE_CONSTRAINT_FOREIGNKEY' }
    expect(await failure(orphan())).toMatchObject(expected)
    const [one, two, three] = await Promise.allSettled([
      orphan(),
      d.write(intent(1, 'a')),
      orphan(),
    ])
    expect(one).toMatchObject({ reason: expected })
    expect(two).toMatchObject({ value: { status: 'applied' } })
    expect(three).toMatchObject({ reason: expected })
    expect(durable()).toEqual(['a'])
    expect(() =>
      d.guard.writeSync(intent(5), (tx) => void tx.exec('INSERT INTO child VALUES (7)')),
    ).toThrow(/FOREIGN KEY/)
    await refused(d.write(intent(4, 'late')), 'stale')
  })
})
