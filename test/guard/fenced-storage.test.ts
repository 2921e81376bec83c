import { describe, expect, it, vi } from 'vitest'
import { fencedStorage } from 'writefence'
import { failure, intent, refused } from '../../src/conformance/fence-destination.ts'
import { SqliteDestination } from '../support/sqlite-destination.ts'

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

  it('takes methods of an object that has no prototype', async () => {
    const d = new SqliteDestination()
    const bare = Object.assign(Object.create(null) as object, { one: () => 1 })
    expect(await fencedStorage(d.guard, bare).one(intent(1, 'x'))).toMatchObject({ result: 1 })
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

  it('needs methods', () => {
    const { guard } = new SqliteDestination()
    class Resource {
      put() {}
    }
    for (const given of [undefined, null, 'text', Resource]) {
      expect(() => fencedStorage(guard, given as never)).toThrow('needs an object with methods')
    }
    for (const given of [{}, { put: 1 }, new (class {})()]) {
      expect(() => fencedStorage(guard, given as never)).toThrow('there are none')
    }
  })
})

describe('the arguments of a fenced storage', () => {
  function store() {
    const d = new SqliteDestination()
    const put = vi.fn((_tx: unknown, ..._args: unknown[]) => 'put')
    return { d, put, storage: fencedStorage(d.guard, { put }) }
  }

  it.each<[string, unknown, string]>([
    ['a Map', new Map([['x', 1]]), 'args[1] is an instance of Map'],
    ['NaN', Number.NaN, 'args[1] is NaN'],
    ['Infinity deep inside', [{ a: Number.POSITIVE_INFINITY }], 'args[1][0].a is Infinity'],
    ['a function', () => 1, 'args[1] is function'],
    ['a member that is undefined', { a: undefined }, 'args[1].a is undefined'],
    ['a BigInt', 1n, 'args[1] is bigint'],
  ])('%s cannot be compared: a TypeError, and nothing is written', async (_, value, says) => {
    const { d, put, storage } = store()
    const advice = 'as it was: pass plain data, or give the intent a fingerprint'
    const error = await failure(storage.put(intent(2, 'x'), 'a', value))
    expect(error).toBeInstanceOf(TypeError)
    expect((error as Error).message).toMatch(`put: ${says}, which does not`)
    expect((error as Error).message).toMatch(advice)
    expect(put).not.toHaveBeenCalled()
    expect(await d.guard.inspect('job')).toBeUndefined()
  })

  it('may be anything where the intent has a fingerprint', async () => {
    const { put, storage } = store()
    const fingerprinted = (fingerprint: string) => intent(2, 'x', { fingerprint })
    expect((await storage.put(fingerprinted('f'), new Map())).status).toBe('applied')
    expect((await storage.put(fingerprinted('f'), new Map())).status).toBe('replayed')
    await refused(storage.put(fingerprinted('g'), new Map()), 'mismatch')
    expect(put.mock.calls.map((args) => args.slice(1))).toEqual([[new Map()]])
  })

  it('may be anything of a write without an operation id: nothing is compared', async () => {
    const { d, storage } = store()
    expect((await storage.put(intent(2), new Map())).status).toBe('applied')
    expect((await storage.put(d.guard.bind(intent(2)), 1n)).status).toBe('applied')
  })

  it('that are undefined at the end are as good as left out, elsewhere not', async () => {
    const { storage } = store()
    expect((await storage.put(intent(2, 'x'), 'a')).status).toBe('applied')
    expect((await storage.put(intent(2, 'x'), 'a', undefined)).status).toBe('replayed')
    await refused(storage.put(intent(2, 'x'), 'a', null), 'mismatch')
    const call = storage.put(intent(2, 'x'), undefined, 'a')
    expect(await failure(call)).toMatchObject({
      message: expect.stringMatching(/^put: args\[0\] is undefined/),
    })
  })

  it('are told apart from a method of another name', async () => {
    const d = new SqliteDestination()
    const storage = fencedStorage(d.guard, { 'a",["b': () => 1, a: () => 2 } as never) as Record<
      string,
      (...args: unknown[]) => Promise<unknown>
    >
    await storage['a",["b']?.(intent(2, 'x'))
    await refused(storage.a?.(intent(2, 'x'), 'b') as Promise<unknown>, 'mismatch')
  })
})

describe('a fenced storage of an instance', () => {
  class Ledger {
    readonly #log: string[]
    constructor(log: string[]) {
      this.#log = log
    }
    credit(_tx: unknown, amount: number): number {
      this.#log.push(`credit ${amount}`)
      return amount
    }
    debit(tx: unknown, amount: number): number {
      return this.credit(tx, -amount)
    }
  }
  class Audited extends Ledger {
    override credit(tx: unknown, amount: number): number {
      return super.credit(tx, amount) * 100
    }
    async later() {}
  }

  it('has the methods of its class and of what that extends, called on the instance', async () => {
    const d = new SqliteDestination()
    const log: string[] = []
    const storage = fencedStorage(d.guard, new Audited(log))
    expect(Object.keys(storage).toSorted()).toEqual(['credit', 'debit', 'later'])
    expect((await storage.credit(intent(2, 'x'), 5)).result).toBe(500)
    expect((await storage.credit(intent(2, 'x'), 5)).status).toBe('replayed')
    expect((await storage.debit(intent(2, 'y'), 7)).result).toBe(-700)
    expect(log).toEqual(['credit 5', 'credit -7'])
    await refused(storage.debit(intent(1, 'z'), 7), 'stale')
    expect(await failure(storage.later(intent(2, 'z')))).toBeInstanceOf(TypeError)
  })

  it('has none that the instance or its class has put something else in place of', () => {
    const { guard } = new SqliteDestination()
    const hidden = Object.defineProperty(new Ledger([]), 'debit', { value: 1, enumerable: true })
    expect(Object.keys(fencedStorage(guard, hidden))).toEqual(['credit'])
  })
})
