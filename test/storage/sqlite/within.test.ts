import { describe, expect, it, vi } from 'vitest'
import { StoreUnavailableError } from 'writefence'
import { intent, refused } from '../../../src/conformance/fence-destination.ts'
import {
  open,
  published,
  SqliteDestination,
  temporaryFile,
} from '../../support/sqlite-destination.ts'

function twoHandles() {
  const path = temporaryFile()
  const d = new SqliteDestination(open(path))
  return { d, other: open(path) }
}

describe('within', () => {
  it('outside of a transaction is refused', () => {
    const { d } = twoHandles()
    const call = () => d.guard.within(d.db, intent(1, 'x'), d.appends('x'))
    expect(call).toThrow(/BEGIN IMMEDIATE first/)
    expect(d.log()).toEqual([])
  })

  it('on another handle of the same file is judged by the same fence', async () => {
    const { d, other } = twoHandles()
    await d.write(intent(5, 'x'))
    other.exec('BEGIN IMMEDIATE')
    expect(() => d.guard.within(other, intent(4, 'y'), d.appends('late'))).toThrow(/stale/)
    expect(d.guard.within(other, intent(6, 'z'), d.appends('z')).status).toBe('applied')
    expect(d.log()).toEqual(['x'])
    other.exec('COMMIT')
    expect(d.log()).toEqual(['x', 'z'])
    await refused(d.write(intent(5, 'w')), 'stale', { highestGeneration: 6 })
  })

  it('on a snapshot that is out of date is refused, and changes nothing', async () => {
    const { d, other } = twoHandles()
    other.exec('BEGIN')
    other.prepare('SELECT * FROM log').all()
    await d.write(intent(7, 'newer'))
    // By the snapshot generation 6 is the first that was ever seen.
    const call = () => d.guard.within(other, intent(6, 'older'), d.appends('older'))
    expect(call).toThrow(StoreUnavailableError)
    expect(call).toThrow(/locked, or has moved on since .* begin it with BEGIN IMMEDIATE/)
    const cause = expect.objectContaining({ code: 'SQLITE_BUSY_SNAPSHOT' })
    expect(call).toThrow(expect.objectContaining({ cause }))
    other.exec('COMMIT')
    expect(d.log()).toEqual(['newer'])
    expect(await d.guard.inspect('job')).toMatchObject({ highestGeneration: 7 })
  })

  it('on a snapshot that is out of date is refused even if there is nothing to put', async () => {
    const { d, other } = twoHandles()
    await d.write(intent(6, 'x'))
    other.exec('BEGIN')
    other.prepare('SELECT * FROM log').all()
    await d.write(intent(7, 'newer'))
    for (const operationId of [undefined, 'x']) {
      const call = () => d.guard.within(other, intent(6, operationId), () => 'read')
      expect(call).toThrow(StoreUnavailableError)
    }
    other.exec('COMMIT')
  })

  it('of two transactions that have not read yet, one gets the lock', () => {
    const { d, other } = twoHandles()
    d.db.exec('BEGIN')
    other.exec('BEGIN')
    d.guard.within(d.db, intent(1, 'a', { leaseId: 'a' }), d.appends('a'))
    const late = () => d.guard.within(other, intent(1, 'b', { leaseId: 'b' }), d.appends('b'))
    expect(late).toThrow(StoreUnavailableError)
    d.db.exec('COMMIT')
    other.exec('ROLLBACK; BEGIN')
    expect(late).toThrow(/conflict/)
    other.exec('COMMIT')
    expect(d.log()).toEqual(['a'])
  })

  it('on a read-only or strange handle is store_unavailable', () => {
    const { d } = twoHandles()
    const strange = open(temporaryFile())
    strange.exec('BEGIN')
    const call = () => d.guard.within(strange, intent(1, 'x'), d.appends('x'))
    expect(call).toThrow(StoreUnavailableError)
    strange.exec('COMMIT')
  })

  it('on a closed store is store_unavailable', async () => {
    const { d } = twoHandles()
    await d.guard.close()
    d.db.exec('BEGIN')
    const call = () => d.guard.within(d.db, intent(1, 'x'), d.appends('x'))
    expect(call).toThrow(StoreUnavailableError)
    expect(call).toThrow('the store is closed')
    d.db.exec('COMMIT')
    expect(d.log()).toEqual([])
  })

  it('whose transaction is lost to the tables of the store says what they said', () => {
    const { d } = twoHandles()
    d.db.exec(`CREATE TRIGGER broken BEFORE INSERT ON writefence_fence
      BEGIN SELECT RAISE(ROLLBACK, 'not today'); END; BEGIN IMMEDIATE`)
    const call = () => d.guard.within(d.db, intent(1, 'x'), d.appends('x'))
    expect(call).toThrow(expect.objectContaining({ message: 'SQLite: not today' }))
    expect(d.db.inTransaction).toBe(false)
    expect(d.log()).toEqual([])
  })

  it('prepares its statements once a handle', () => {
    const { d, other } = twoHandles()
    const within = (tx: typeof other, id: string) => {
      tx.exec('BEGIN IMMEDIATE')
      expect(d.guard.within(tx, intent(1, id), () => id).status).toBe('applied')
      tx.exec('COMMIT')
    }
    within(other, 'first')
    const prepared = [d.db, other].map((handle) => vi.spyOn(handle, 'prepare'))
    within(d.db, 'x')
    within(other, 'y')
    for (const prepare of prepared) expect(prepare).not.toHaveBeenCalled()
  })

  it('refuses an async function before it is called', () => {
    const { d } = twoHandles()
    let called = false
    const apply = async () => {
      called = true
    }
    d.db.exec('BEGIN')
    expect(() => d.guard.within(d.db, intent(1, 'x'), apply as never)).toThrow(TypeError)
    d.db.exec('COMMIT')
    expect(called).toBe(false)
  })

  it('says that its decisions are provisional', () => {
    const { d } = twoHandles()
    const decisions = published('decision')
    d.db.exec('BEGIN IMMEDIATE')
    d.guard.within(d.db, intent(1, 'x'), d.appends('x'))
    d.db.exec('ROLLBACK')
    expect(decisions).toMatchObject([{ verb: 'within', decision: 'applied', provisional: true }])
  })
})
