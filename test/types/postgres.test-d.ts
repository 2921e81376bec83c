import type pg from 'pg'
import { describe, expectTypeOf, it } from 'vitest'
import { type Outcome, WriteGuard } from 'writefence'
import { PostgresFenceStore, PostgresLeaseStore, type PostgresQueryable } from 'writefence/postgres'

// The compiler is the test here (`npm run types`): nothing in this file runs anything.
declare const pool: pg.Pool
declare const client: pg.Client
declare const token: { jobId: string; generation: number }
const never = (_: () => unknown) => {}

describe('a pool of node-postgres', () => {
  it('tells the effect what its client is', () => {
    never(() => {
      const guard = new WriteGuard(new PostgresFenceStore(pool))
      const outcome = guard.write({ token }, async (tx) => {
        expectTypeOf(tx).toEqualTypeOf<pg.PoolClient>()
        return (await tx.query('SELECT 1')).rowCount
      })
      expectTypeOf(outcome).toEqualTypeOf<Promise<Outcome<number | null>>>()
    })
  })

  it('serves for leases', () => {
    never(() => new PostgresLeaseStore(pool, { schema: 'jobs', timeoutMs: 1000 }))
    // @ts-expect-error leases run no callback
    never(() => new PostgresLeaseStore(pool, { effectTimeoutMs: 1000 }))
  })
})

describe('within', () => {
  it('takes a client of a pool; another one where the store is told so', () => {
    never(() => {
      const guard = new WriteGuard(new PostgresFenceStore(pool))
      // @ts-expect-error a client that is in no pool has no release()
      return guard.within(client, { token }, () => 1)
    })
    never(() => {
      const guard = new WriteGuard(new PostgresFenceStore<pg.ClientBase>(pool))
      return guard.within(client, { token }, (tx) => tx.query('SELECT 1'))
    })
  })

  it('takes whatever sends a statement', () => {
    never(() => {
      const guard = new WriteGuard(new PostgresFenceStore<PostgresQueryable>(pool))
      return guard.within({ query: async () => ({ rows: [] }) }, { token }, () => 1)
    })
  })
})
