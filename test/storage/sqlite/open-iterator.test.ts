import type { Database } from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { StoreUnavailableError } from 'writefence'
import { failure, intent } from '../../../src/conformance/fence-destination.ts'
import {
  fileDestination,
  open,
  SqliteDestination,
  stopMonotonicTime,
  turns,
} from '../../support/sqlite-destination.ts'

const SOON = { busyTimeoutMs: 30 }

describe('an iterator that is left open on the handle', () => {
  function leave(tx: Database): IterableIterator<unknown> {
    const rows = tx.prepare('SELECT text FROM log').iterate()
    rows.next()
    return rows
  }

  /** A write whose effect takes all the time that there is, and leaves one. */
  async function tooLong() {
    const advance = stopMonotonicTime()
    const { d, other } = fileDestination(SOON)
    await d.write(intent(1, 'old'))
    const left: IterableIterator<unknown>[] = []
    const call = d.guard.write(intent(1, 'x'), (tx) => {
      d.appends('x')(tx)
      advance(30)
      left.push(leave(tx))
    })
    return { d, other, left, call }
  }

  it.each([undefined, 'named'])('by an effect (%s) costs only its own write', async (named) => {
    stopMonotonicTime()
    const { d, other } = fileDestination()
    other.exec("INSERT INTO log VALUES ('old')")
    const left: IterableIterator<unknown>[] = []
    const calls = [
      d.write(intent(1, 'a', { jobId: 'a' })),
      d.guard.write(intent(5, named, { jobId: 'culprit' }), (tx) => {
        d.appends('culprit')(tx)
        left.push(leave(tx))
      }),
      d.write(intent(1, 'b', { jobId: 'b' })),
    ]
    const ended = Promise.allSettled(calls)
    await turns()
    expect(d.log(other)).toEqual(['old'])
    left[0]?.return?.()
    const [a, culprit, b] = await ended
    expect([a, b]).toMatchObject([{ status: 'fulfilled' }, { status: 'fulfilled' }])
    expect(culprit).toMatchObject({
      reason: { message: expect.stringContaining('busy executing') },
    })
    expect(d.log(other)).toEqual(['old', 'a', 'b'])
    expect(left).toHaveLength(1)
    expect(await d.guard.inspect('culprit')).toMatchObject({ highestGeneration: 5 })
  })

  it('by an effect for too long: the write is withdrawn, and says what held it', async () => {
    const { d, left, call } = await tooLong()
    const cause = { message: expect.stringContaining('busy executing a query') }
    expect(await failure(call)).toMatchObject({ code: 'store_unavailable', cause })
    left[0]?.return?.()
    expect((await d.write(intent(1, 'y'))).status).toBe('applied')
    expect(d.log()).toEqual(['old', 'y'])
  })

  it('by an effect: its transaction is over at once, and takes in nothing else', async () => {
    const { d, other, left, call } = await tooLong()
    await failure(call)
    expect(d.db.inTransaction).toBe(false)
    // The lock is free again, though the iterator is still open.
    other.exec("INSERT INTO log VALUES ('theirs')")
    left[0]?.return?.()
    d.appends('mine')(d.db)
    expect(d.log(other)).toEqual(['old', 'theirs', 'mine'])
    expect((await d.write(intent(1, 'y'))).status).toBe('applied')
    expect(d.log(other)).toEqual(['old', 'theirs', 'mine', 'y'])
  })

  it('by an effect on the calling stack leaves no transaction behind either', () => {
    const { d, other } = fileDestination()
    d.guard.writeSync(intent(1, 'old'), d.appends('old'))
    const left: IterableIterator<unknown>[] = []
    const write = () => d.guard.writeSync(intent(1, 'x'), (tx) => void left.push(leave(tx)))
    expect(write).toThrow(StoreUnavailableError)
    expect(d.db.inTransaction).toBe(false)
    left[0]?.return?.()
    d.appends('mine')(d.db)
    d.guard.writeSync(intent(1, 'y'), d.appends('y'))
    expect(d.log(other)).toEqual(['old', 'mine', 'y'])
  })

  it("keeps the driver's own check on: the handle is as strict as before", async () => {
    const { d } = fileDestination()
    await d.write(intent(1, 'old'))
    const left: IterableIterator<unknown>[] = []
    const call = d.guard.write(intent(1, 'x'), (tx) => void left.push(leave(tx)))
    await turns()
    expect(() => d.appends('mine')(d.db)).toThrow('busy executing')
    left[0]?.return?.()
    expect(await failure(call)).toMatchObject({ message: expect.stringContaining('busy') })
    expect(d.log()).toEqual(['old'])
  })

  it('by an effect that returns it is closed', async () => {
    const { d } = fileDestination()
    for (const operationId of ['x', undefined]) {
      const call = d.guard.write(intent(1, operationId), (tx) => tx.prepare('SELECT 1').iterate())
      expect(await failure(call)).toMatchObject({ message: expect.stringContaining('iterator') })
    }
    expect((await d.write(intent(1, 'x'))).status).toBe('applied')
  })

  it('by its user is waited for, within the bound', async () => {
    const { d } = fileDestination(SOON)
    await d.write(intent(1, 'old'))
    const rows = leave(d.db)
    expect(await failure(d.write(intent(1, 'a')))).toBeInstanceOf(StoreUnavailableError)
    const write = d.write(intent(1, 'b'))
    await turns(1)
    rows.return?.()
    expect((await write).status).toBe('applied')
    expect(d.log()).toEqual(['old', 'b'])
  })

  it('is not waited for on the thread that would have to close it', () => {
    const d = new SqliteDestination(open(), { busyTimeoutMs: 2 ** 31 })
    d.guard.writeSync(intent(1, 'old'), d.appends('old'))
    const rows = leave(d.db)
    expect(() => d.guard.writeSync(intent(1, 'x'), d.appends('x'))).toThrow(StoreUnavailableError)
    rows.return?.()
    expect(d.log()).toEqual(['old'])
  })
})
