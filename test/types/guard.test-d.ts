import type { Database } from 'better-sqlite3'
import { describe, expectTypeOf, it } from 'vitest'
import {
  type FenceStore,
  type FencingToken,
  fencedStorage,
  type Outcome,
  type RefusalCode,
  type Verdict,
  type VerdictCode,
  WriteGuard,
  WriteRefusedError,
} from 'writefence'
import type { SqliteFenceStore } from 'writefence/sqlite'

// The compiler is the test here (`npm run types`): nothing in this file runs anything.
declare const sqlite: WriteGuard<Database, 'sync'>
declare const pooled: WriteGuard<{ query(sql: string): Promise<unknown> }, 'async'>
declare const token: FencingToken
const never = (_: () => unknown) => {}

describe('the callback of a write', () => {
  it('on a synchronous engine returns no promise', () => {
    never(() => sqlite.write({ token }, () => 1))
    never(() => sqlite.write({ token }, () => undefined))
    // @ts-expect-error an async function would end after its transaction
    never(() => sqlite.write({ token }, async () => 1))
    // @ts-expect-error a promise would end after its transaction
    never(() => sqlite.write({ token }, () => Promise.resolve(1)))
    // @ts-expect-error so it would within one of the user's own
    never(() => sqlite.within({} as Database, { token }, async () => 1))
    // @ts-expect-error and in the synchronous form
    never(() => sqlite.writeSync({ token }, async () => 1))
    // @ts-expect-error and through a bound fence
    never(() => sqlite.bind({ token }).write(async () => 1))
  })

  it('on an asynchronous engine may', () => {
    never(() => pooled.write({ token }, async (tx) => tx.query('SELECT 1')))
    never(() => pooled.write({ token }, () => 1))
  })

  it('is given the transaction of its engine', () => {
    never(() =>
      sqlite.write({ token }, (tx) => {
        expectTypeOf(tx).toEqualTypeOf<Database>()
      }),
    )
  })

  it('has a synchronous form on synchronous engines only', () => {
    never(() => sqlite.writeSync({ token }, () => 1))
    // @ts-expect-error an asynchronous engine cannot answer on the stack
    never(() => pooled.writeSync({ token }, () => 1))
  })
})

describe('an outcome', () => {
  it('has the type of what the callback returns, awaited', () => {
    never(async () => {
      expectTypeOf(await sqlite.write({ token }, () => 'r')).toEqualTypeOf<Outcome<string>>()
      expectTypeOf(await pooled.write({ token }, async () => 7)).toEqualTypeOf<Outcome<number>>()
      expectTypeOf(await sqlite.effect({ token }, async () => [1])).toEqualTypeOf<
        Outcome<number[]>
      >()
    })
    expectTypeOf<Outcome<string>['status']>().toEqualTypeOf<'applied' | 'replayed'>()
  })

  it('of within is there at once on a synchronous engine, a promise on others', () => {
    never(() => {
      const tx = {} as Database
      expectTypeOf(sqlite.within(tx, { token }, () => 1)).toEqualTypeOf<Outcome<number>>()
      const client = { query: async () => 1 }
      expectTypeOf(pooled.within(client, { token }, async () => 1)).toEqualTypeOf<
        Promise<Outcome<number>>
      >()
    })
  })
})

describe('a fenced storage', () => {
  it('takes an intent or a bound fence in place of the transaction', () => {
    never(async () => {
      const storage = fencedStorage(sqlite, {
        credit: (_tx, id: string, amount: number) => ({ id, amount }),
      })
      const outcome = await storage.credit({ token }, 'a', 5)
      expectTypeOf(outcome.result).toEqualTypeOf<{ id: string; amount: number }>()
      await storage.credit(sqlite.bind({ token }), 'a', 5)
      // @ts-expect-error the amount is a number
      await storage.credit({ token }, 'a', '5')
      // @ts-expect-error no method can be called without a token
      await storage.credit('a', 5)
    })
  })

  it('takes an instance of a class, of which everything public is a method', () => {
    class Accounts {
      readonly #currency = 'EUR'
      credit(_tx: Database, amount: number) {
        return `${amount} ${this.#currency}`
      }
    }
    class Open extends Accounts {
      readonly name = 'open'
    }
    never(async () => {
      const storage = fencedStorage(sqlite, new Accounts())
      expectTypeOf(await storage.credit({ token }, 5)).toEqualTypeOf<Outcome<string>>()
      // @ts-expect-error a name is no method
      fencedStorage(sqlite, new Open())
      // @ts-expect-error nor is text a resource
      fencedStorage(sqlite, 'accounts')
    })
  })

  it('gives the transaction to its methods, and awaits them on asynchronous engines', () => {
    never(async () => {
      const storage = fencedStorage(pooled, {
        async count(tx, table: string) {
          expectTypeOf(tx.query).toBeFunction()
          return table.length
        },
      })
      expectTypeOf(await storage.count({ token }, 't')).toEqualTypeOf<Outcome<number>>()
    })
  })
})

describe('a refusal', () => {
  it('narrows by its code', () => {
    never((error: unknown = undefined) => {
      if (!(error instanceof WriteRefusedError)) return
      expectTypeOf(error.code).toEqualTypeOf<RefusalCode>()
      if (error.code === 'stale') expectTypeOf(error.code).toEqualTypeOf<'stale'>()
      // @ts-expect-error there is no such code
      if (error.code === 'late') throw error
    })
    never((verdict: Verdict = { status: 'apply', highestGeneration: 1 }) => {
      if (verdict.status === 'refuse') expectTypeOf(verdict.code).toEqualTypeOf<VerdictCode>()
      // @ts-expect-error only a refusal has a code
      if (verdict.status === 'apply') return verdict.code
      return undefined
    })
  })
})

describe('an engine', () => {
  it('is a store of its mode, and a guard takes the mode from it', () => {
    expectTypeOf<SqliteFenceStore<Database>>().toExtend<FenceStore<Database, 'sync'>>()
    never((store = {} as SqliteFenceStore<Database>) => {
      expectTypeOf(new WriteGuard(store)).toEqualTypeOf<WriteGuard<Database, 'sync'>>()
    })
  })
})
