import Database from 'better-sqlite3'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { StoreUnavailableError } from 'writefence'
import { failure, intent } from '../../../src/conformance/fence-destination.ts'
import {
  fileDestination,
  SqliteDestination,
  stopMonotonicTime,
  temporaryFile,
  turns,
} from '../../support/sqlite-destination.ts'

const SOON = { busyTimeoutMs: 30 }

describe('while the handle is inside a transaction of its user', () => {
  it('a write waits for its end, and never joins it', async () => {
    const { d, other } = fileDestination()
    d.db.exec("BEGIN IMMEDIATE; INSERT INTO log VALUES ('user')")
    const write = d.write(intent(1, 'x'))
    await turns()
    expect(d.log()).toEqual(['user'])
    d.db.exec('ROLLBACK')
    expect((await write).status).toBe('applied')
    expect(d.log(other)).toEqual(['x'])
  })

  it('a write waits for it after others that were committed', async () => {
    const { d } = fileDestination()
    await d.write(intent(1, 'before'))
    d.db.exec('DELETE FROM log; BEGIN IMMEDIATE')
    const write = d.write(intent(1, 'x'))
    await turns()
    expect([d.log(), d.db.inTransaction]).toEqual([[], true])
    d.db.exec("INSERT INTO log VALUES ('user'); COMMIT")
    expect((await write).status).toBe('applied')
    expect(d.log()).toEqual(['user', 'x'])
  })

  it('a write is store_unavailable after the bound, and lands no more', async () => {
    const { d, other } = fileDestination(SOON)
    d.db.exec('BEGIN IMMEDIATE')
    const error = await failure(d.write(intent(1, 'x')))
    expect(error).toBeInstanceOf(StoreUnavailableError)
    expect(error).toMatchObject({ message: expect.stringContaining('withdrawn') })
    const message = 'the handle is inside a transaction of its user'
    expect(error).toMatchObject({ cause: { message } })
    d.db.exec('COMMIT')
    expect((await d.write(intent(1, 'y'))).status).toBe('applied')
    expect(d.log(other)).toEqual(['y'])
  })

  it.each<[string, (d: SqliteDestination) => Promise<unknown>]>([
    ['effect', ({ guard }) => guard.effect(intent(1, 'x'), async () => expect.fail('it ran'))],
    ['advance', ({ guard }) => guard.advance(intent(1).token)],
    ['seal', ({ guard }) => guard.seal(intent(1).token)],
    ['reopen', ({ guard }) => guard.reopen('job')],
    [
      'resolve',
      ({ guard }) => guard.resolve({ jobId: 'job', operationId: 'x' }, { status: 'not_applied' }),
    ],
  ])('%s is refused: what can be rolled back is no reservation', async (_, call) => {
    const { d } = fileDestination()
    d.db.exec('BEGIN IMMEDIATE')
    const error = await failure(call(d))
    expect(error).toBeInstanceOf(TypeError)
    expect((error as Error).message).toMatch(/is inside a transaction, .* durable: call .* outside/)
    d.db.exec('COMMIT')
    expect(await d.guard.inspect('job')).toBeUndefined()
  })

  it('writeSync is refused', () => {
    const { d } = fileDestination()
    d.db.exec('BEGIN')
    expect(() => d.guard.writeSync(intent(1, 'x'), d.appends('x'))).toThrow(/use within/)
    d.db.exec('COMMIT')
    expect(d.log()).toEqual([])
  })

  it('inspect, judge and unsettled wait: what is not committed may never be', async () => {
    const { d } = fileDestination()
    d.db.exec('BEGIN IMMEDIATE')
    d.guard.within(d.db, intent(9, 'x'), d.appends('x'))
    const answers = Promise.all([
      d.guard.inspect('job'),
      d.guard.judge(intent(1, 'x')),
      d.guard.unsettled(),
    ])
    d.db.exec('ROLLBACK')
    expect(await answers).toEqual([undefined, { status: 'apply', highestGeneration: 1 }, []])
  })

  it('an effect that has run settles once the transaction has ended', async () => {
    const { d } = fileDestination()
    const outcome = await d.guard.effect(intent(1, 'x'), async () => {
      d.db.exec('BEGIN IMMEDIATE')
      setImmediate(() => d.db.exec('ROLLBACK'))
      return 'r'
    })
    expect(outcome.status).toBe('applied')
    expect(await d.guard.judge(intent(1, 'x'))).toMatchObject({ status: 'replay' })
  })
})

describe('while another connection has the lock', () => {
  it('a write waits without blocking the event loop', async () => {
    const { d, other } = fileDestination()
    other.exec('BEGIN IMMEDIATE')
    const write = d.write(intent(1, 'x'))
    await turns()
    other.exec("INSERT INTO log VALUES ('other'); COMMIT")
    expect((await write).status).toBe('applied')
    expect(d.log()).toEqual(['other', 'x'])
  })

  it('R106: a write is store_unavailable after the bound, and lands no more', async () => {
    const { d, other } = fileDestination(SOON)
    other.exec('BEGIN IMMEDIATE')
    const errors = await Promise.all(['a', 'b'].map((id) => failure(d.write(intent(1, id)))))
    for (const error of errors) {
      expect(error).toBeInstanceOf(StoreUnavailableError)
      expect(error).toMatchObject({ cause: { code: 'SQLITE_BUSY' }, retryable: true })
    }
    other.exec('COMMIT')
    expect((await d.write(intent(1, 'c'))).status).toBe('applied')
    expect(d.log()).toEqual(['c'])
  })

  it('writeSync waits for its bound on the thread, then is store_unavailable', () => {
    const { d, other } = fileDestination(SOON)
    d.db.pragma('busy_timeout = 0')
    other.exec('BEGIN IMMEDIATE')
    expect(() => d.guard.writeSync(intent(1, 'x'), d.appends('x'))).toThrow(StoreUnavailableError)
    other.exec('COMMIT')
    expect(d.guard.writeSync(intent(1, 'y'), d.appends('y')).status).toBe('applied')
    expect(d.log()).toEqual(['y'])
  })

  it('writeSync is let in by what ends while it waits', () => {
    const { d, other } = fileDestination(SOON)
    d.db.pragma('busy_timeout = 0')
    other.exec("BEGIN IMMEDIATE; INSERT INTO log VALUES ('other')")
    const pauses = vi.spyOn(Atomics, 'wait').mockImplementation(() => {
      other.exec('COMMIT')
      return 'timed-out'
    })
    onTestFinished(() => pauses.mockRestore())
    expect(d.guard.writeSync(intent(1, 'x'), d.appends('x')).status).toBe('applied')
    expect(pauses).toHaveBeenCalledOnce()
    expect(d.log()).toEqual(['other', 'x'])
  })

  it('writeSync waits no longer than its bound', () => {
    const advance = stopMonotonicTime()
    const { d, other } = fileDestination(SOON)
    d.db.pragma('busy_timeout = 0')
    other.exec('BEGIN IMMEDIATE')
    const pauses = vi.spyOn(Atomics, 'wait').mockImplementation(() => {
      advance(15)
      return 'timed-out'
    })
    onTestFinished(() => pauses.mockRestore())
    expect(() => d.guard.writeSync(intent(1, 'x'), d.appends('x'))).toThrow(StoreUnavailableError)
    expect(pauses).toHaveBeenCalledTimes(2)
    other.exec('COMMIT')
  })

  it('reads go on', async () => {
    const { d, other } = fileDestination()
    await d.write(intent(3, 'x'))
    other.exec('BEGIN IMMEDIATE')
    expect(await d.guard.inspect('job')).toMatchObject({ highestGeneration: 3 })
    other.exec('COMMIT')
  })

  it('reads wait where even they are locked out', async () => {
    // Without a write-ahead log a writer keeps readers out too.
    const path = temporaryFile()
    const d = new SqliteDestination(new Database(path, { timeout: 0 }))
    const other = new Database(path)
    other.exec('BEGIN EXCLUSIVE')
    const state = d.guard.inspect('job')
    await turns()
    other.exec('COMMIT')
    expect(await state).toBeUndefined()
    d.db.close()
    other.close()
  })
})

describe('called inside the effect of a write', () => {
  const nested: [string, (d: SqliteDestination) => Promise<unknown>][] = [
    ['write', (d) => d.write(intent(2, 'inner'))],
    ['advance', (d) => d.guard.advance(intent(2).token)],
    ['effect', (d) => d.guard.effect(intent(2), async () => expect.fail('it ran'))],
    ['judge', (d) => d.guard.judge(intent(2))],
    ['inspect', (d) => d.guard.inspect('job')],
    ['prune', (d) => d.guard.prune({ olderThanMs: 0 })],
  ]
  it.each(nested)('%s is refused, and the write goes on', async (_, call) => {
    const d = new SqliteDestination()
    const inner: Promise<unknown>[] = []
    const outcome = await d.guard.write(intent(1, 'outer'), (tx) => {
      inner.push(failure(call(d)))
      return d.appends('outer', 1)(tx)
    })
    expect(outcome.status).toBe('applied')
    expect(await inner[0]).toBeInstanceOf(TypeError)
    expect(d.log()).toEqual(['outer'])
    expect(await d.guard.inspect('job')).toMatchObject({ highestGeneration: 1 })
  })

  it('writeSync is refused as well', async () => {
    const d = new SqliteDestination()
    const outer = d.guard.write(intent(1, 'outer'), () =>
      d.guard.writeSync(intent(2, 'inner'), d.appends('inner')),
    )
    expect(await failure(outer)).toMatchObject({ message: expect.stringContaining('use within') })
    expect(d.log()).toEqual([])
  })

  it('within is part of the write', async () => {
    const d = new SqliteDestination()
    await d.guard.write(intent(1, 'outer'), (tx) => {
      const inner = intent(3, 'inner', { jobId: 'other' })
      return d.guard.within(tx, inner, d.appends('inner', 1)).result
    })
    expect(d.log()).toEqual(['inner'])
    const failing = d.guard.write(intent(1, 'again'), (tx) => {
      d.guard.within(tx, intent(4, 'inner 2', { jobId: 'other' }), d.appends('inner 2'))
      throw new Error('boom')
    })
    await failure(failing)
    expect(d.log()).toEqual(['inner'])
    expect(await d.guard.inspect('other')).toMatchObject({ highestGeneration: 3 })
  })
})
