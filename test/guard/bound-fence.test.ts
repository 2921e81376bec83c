import { describe, expect, it } from 'vitest'
import { fencedStorage } from 'writefence'
import { failure, intent, refused } from '../../src/conformance/fence-destination.ts'
import { SqliteDestination } from '../support/sqlite-destination.ts'

describe('a bound fence', () => {
  it('is the same verbs with the intent filled in', async () => {
    const d = new SqliteDestination()
    const bound = d.guard.bind(intent(5, 'x', { scope: 's', fingerprint: 'f' }))
    expect(bound.token).toEqual({ jobId: 'job', generation: 5, leaseId: 'a' })
    expect(await bound.judge()).toEqual({ status: 'apply', highestGeneration: 5 })
    expect(await bound.write(d.appends('x', 'r'))).toMatchObject({ status: 'applied' })
    expect(await bound.effect(async () => 'again')).toMatchObject({ status: 'replayed' })
    d.db.exec('BEGIN')
    expect(bound.within(d.db, d.appends('again'))).toMatchObject({ status: 'replayed' })
    d.db.exec('COMMIT')
    expect(await bound.advance()).toMatchObject({ scope: 's', highestGeneration: 5 })
    expect(await bound.seal()).toMatchObject({ scope: 's', sealed: true })
    expect(await d.guard.inspect('job')).toBeUndefined()
    expect(d.log()).toEqual(['x'])
  })

  it('takes another operation id and fingerprint for one call', async () => {
    const d = new SqliteDestination()
    const bound = d.guard.bind(intent(5, 'x', { fingerprint: 'f' }))
    await bound.write(d.appends('x'))
    const y = { operationId: 'y', fingerprint: 'g' }
    expect((await bound.write(d.appends('y'), y)).status).toBe('applied')
    expect((await bound.effect(async () => 1, {}, y)).status).toBe('replayed')
    d.db.exec('BEGIN')
    expect(bound.within(d.db, d.appends('y'), y).status).toBe('replayed')
    d.db.exec('COMMIT')
    await refused(bound.write(d.appends('x'), { fingerprint: 'g' }), 'mismatch')
    expect((await bound.write(d.appends('x'))).status).toBe('replayed')
  })

  it('takes nothing from an override that is undefined: the write keeps its id', async () => {
    const d = new SqliteDestination()
    const bound = d.guard.bind(intent(5, 'x', { fingerprint: 'f' }))
    const nothing = { operationId: undefined, fingerprint: undefined }
    expect((await bound.write(d.appends('x'), nothing)).status).toBe('applied')
    expect((await bound.write(d.appends('x'), nothing)).status).toBe('replayed')
    expect((await bound.effect(async () => 1, {}, nothing)).status).toBe('replayed')
    d.db.exec('BEGIN')
    expect(bound.within(d.db, d.appends('x'), nothing).status).toBe('replayed')
    d.db.exec('COMMIT')
    const other = d.guard.write(intent(5, 'x', { fingerprint: 'g' }), d.appends('x'))
    await refused(other, 'mismatch')
    expect(d.log()).toEqual(['x'])
  })

  it.each([
    ['a null operation id', { operationId: null }, 'operationId'],
    ['an empty fingerprint', { fingerprint: '' }, 'fingerprint'],
    ['a misspelled member', { operationID: 'y' }, 'no member operationID'],
    ['another scope', { scope: undefined }, 'no member scope'],
    ['another token', { token: intent(6).token }, 'no member token'],
  ])('refuses an override with %s, and does not throw on the stack', async (_, given, text) => {
    const d = new SqliteDestination()
    const bound = d.guard.bind(intent(5, 'x', { scope: 's' }))
    const override = given as never
    for (const call of [
      bound.write(d.appends('x'), override),
      bound.effect(async () => 1, {}, override),
    ]) {
      expect(await failure(call)).toMatchObject({ message: expect.stringContaining(text) })
    }
    d.db.exec('BEGIN')
    expect(() => bound.within(d.db, d.appends('x'), override)).toThrow(text)
    d.db.exec('ROLLBACK')
    expect(await d.guard.inspect('job', 's')).toBeUndefined()
  })

  it('is no write intent: its operation id and scope would be lost', async () => {
    const d = new SqliteDestination()
    const bound = d.guard.bind(intent(5, 'x', { scope: 's' }))
    const call = d.guard.write(bound, d.appends('x'))
    expect(await failure(call)).toMatchObject({ message: expect.stringContaining('own verbs') })
    expect(d.log()).toEqual([])
  })

  it('hands the options of an effect on', async () => {
    let time = 0
    const { guard } = new SqliteDestination(undefined, { now: () => time })
    const bound = guard.bind(intent(5, 'x'))
    const boom = new Error('boom')
    const fails = () => Promise.reject(boom)
    expect(await failure(bound.effect(fails, { errorsMean: 'not_applied' }))).toBe(boom)
    expect(await guard.unsettled()).toEqual([])
    time = 1
    void bound.effect(() => new Promise<never>(() => {}), { deadlineMs: 30 })
    await refused(
      bound.effect(async () => 1),
      'in_flight',
      { retryAfterMs: 30 },
    )
  })
})

describe('a fenced storage', () => {
  function accounts() {
    const d = new SqliteDestination()
    const calls: unknown[][] = []
    const storage = fencedStorage(d.guard, {
      credit(tx, id: string, amount: number) {
        calls.push([id, amount])
        d.appends(`credit ${id} ${amount}`)(tx)
        return { id, amount }
      },
      debit(tx, id: string, amount: number) {
        d.appends(`debit ${id} ${amount}`)(tx)
        return { id, amount }
      },
      close(tx, id: string) {
        d.appends(`close ${id}`)(tx)
      },
      fail(tx) {
        d.appends('half')(tx)
        throw new Error('boom')
      },
    })
    return { d, storage, calls }
  }

  it('runs a method in a guarded write, and replays it', async () => {
    const { d, storage, calls } = accounts()
    const credit = () => storage.credit(intent(2, 'x'), 'a', 5)
    expect(await credit()).toEqual({
      status: 'applied',
      result: { id: 'a', amount: 5 },
      appliedGeneration: 2,
      highestGeneration: 2,
    })
    expect(await credit()).toMatchObject({ status: 'replayed', result: { id: 'a', amount: 5 } })
    expect(calls).toEqual([['a', 5]])
    await refused(storage.credit(intent(1, 'y'), 'a', 5), 'stale')
    expect(d.log()).toEqual(['credit a 5'])
  })

  it('R85: one operation id on two methods, or with other arguments, is a mismatch', async () => {
    const { storage } = accounts()
    await storage.credit(intent(2, 'x'), 'a', 5)
    await refused(storage.credit(intent(2, 'x'), 'a', 6), 'mismatch')
    await refused(storage.debit(intent(2, 'x'), 'a', 5), 'mismatch')
  })

  it("takes the caller's fingerprint where there is one", async () => {
    const { storage } = accounts()
    await storage.credit(intent(2, 'x', { fingerprint: 'f' }), 'a', 5)
    const again = storage.credit(intent(2, 'x', { fingerprint: 'f' }), 'a', 6)
    expect(await again).toMatchObject({ status: 'replayed', result: { amount: 5 } })
  })

  it('takes a bound fence, and writes through it', async () => {
    const { d, storage } = accounts()
    const bound = d.guard.bind(intent(2, 'x', { scope: 's' }))
    expect((await storage.credit(bound, 'a', 5)).status).toBe('applied')
    expect((await storage.credit(bound, 'a', 5)).status).toBe('replayed')
    await refused(storage.credit(bound, 'a', 6), 'mismatch')
    expect(await d.guard.inspect('job', 's')).toMatchObject({ highestGeneration: 2 })
  })

  it('asks a bound fence itself: one that counts its writes must see them', async () => {
    const { d, storage } = accounts()
    const bound = d.guard.bind(intent(2, 'x'))
    const seen: unknown[] = []
    const write = bound.write.bind(bound)
    bound.write = (apply, override) => {
      seen.push(override)
      return write(apply, override)
    }
    await storage.close(bound, 'a')
    expect(seen).toEqual([{ fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/) }])
  })

  it('refuses a bound fence of another guard, whose transaction is none of its own', async () => {
    const { d, storage } = accounts()
    const other = new SqliteDestination()
    const call = storage.close(other.guard.bind(intent(2, 'x')), 'a')
    expect(await failure(call)).toMatchObject({ message: expect.stringContaining('another guard') })
    expect([d.log(), other.log()]).toEqual([[], []])
  })

  it('undoes a method that throws, and passes its error on', async () => {
    const { d, storage } = accounts()
    expect(await failure(storage.fail(intent(2, 'x')))).toMatchObject({ message: 'boom' })
    expect(d.log()).toEqual([])
  })

  it('refuses a method that is async before it is called', async () => {
    const d = new SqliteDestination()
    let called = false
    const storage = fencedStorage(d.guard, {
      async credit() {
        called = true
      },
    })
    expect(await failure(storage.credit(intent(2, 'x')))).toBeInstanceOf(TypeError)
    expect(called).toBe(false)
  })

  it('R68: may have methods named like members of every object', async () => {
    const d = new SqliteDestination()
    const storage = fencedStorage(d.guard, {
      constructor: d.appends('constructor', 1),
      valueOf: d.appends('valueOf', 2),
    })
    expect((await storage.constructor(intent(2, 'x'))).result).toBe(1)
    expect((await storage.valueOf(intent(2, 'y'))).result).toBe(2)
  })

  it('rejects arguments that have no JSON, and changes nothing', async () => {
    const { d, storage } = accounts()
    const call = storage.credit(intent(2, 'x'), 'a', 1n as never)
    expect(await failure(call)).toBeInstanceOf(TypeError)
    expect(await d.guard.inspect('job')).toBeUndefined()
  })
})
