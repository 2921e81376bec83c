import type { Database } from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { StoreUnavailableError, WriteGuard } from 'writefence'
import { SqliteFenceStore } from 'writefence/sqlite'
import { destination, faults, versions } from './harness.ts'
import { writeRoute } from './routes.ts'

describe.each(versions)('%s, a store that is half there', (_, express) => {
  function setUp(make: (db: Database) => SqliteFenceStore) {
    const bank = destination()
    const guard = new WriteGuard(make(bank.db)) as typeof bank.guard
    return writeRoute(express, undefined, {}, { ...bank, guard })
  }

  it('throws what no store should: an error, and not a store that is down', async () => {
    class Broken extends SqliteFenceStore {
      override async transact(): Promise<never> {
        throw new RangeError('bug')
      }
    }
    const { send, runs } = setUp((db) => new Broken(db))
    const seen = faults()
    expect((await send(7, 'op')).status).toBe(500)
    expect([seen, runs()]).toEqual([[], 0])
  })

  it('can be read but not written: it is down, also for who may be stale', async () => {
    class ReadOnly extends SqliteFenceStore {
      override async transact(): Promise<never> {
        throw new StoreUnavailableError('read-only')
      }
    }
    const { send, store } = setUp((db) => new ReadOnly(db))
    await new WriteGuard(store).advance({ jobId: 'job', generation: 8 })
    const answer = await send(7, 'op')
    expect([answer.status, answer.body.code]).toEqual([503, 'store_unavailable'])
    expect(answer.body.retryable).toBe(true)
  })

  it('cannot be read: that changes no refusal', async () => {
    class Blind extends SqliteFenceStore {
      override async view(): Promise<never> {
        throw new RangeError('bug')
      }
    }
    const { send } = setUp((db) => new Blind(db))
    await send(8, 'op')
    const stale = await send(7, 'op')
    expect([stale.status, stale.body.code]).toEqual([412, 'stale'])
    expect(stale.body).not.toHaveProperty('operationApplied')
  })
})
