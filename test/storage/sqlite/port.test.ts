import { describe, expect, it, onTestFinished } from 'vitest'
import { failure, intent } from '../../../src/conformance/fence-destination.ts'
import type { Action, JobView } from '../../../src/guard/fence-store.ts'
import { SqliteTransaction } from '../../../src/storage/sqlite/sqlite-transaction.ts'
import { open, SqliteDestination } from '../../support/sqlite-destination.ts'

const job = { scope: '', jobId: 'job' }
const put = {
  kind: 'put',
  operation: { status: 'unknown', generation: 1, fingerprint: undefined, attemptId: 't' },
} as const

/** A unit that answers with what it saw. */
function seeing(action: Action, operationId?: string) {
  return {
    job,
    operationId,
    insideTransaction: 'wait',
    step: (view: JobView) => ({ answer: view, action }),
  } as const
}

describe('a unit', () => {
  it('sees what is unsettled only where it asks: counting costs', async () => {
    const { store } = new SqliteDestination()
    expect(store.mode).toBe('sync')
    const unit = seeing({ kind: 'none' })
    expect((await store.transact(unit)).answer.census).toBeUndefined()
    expect((await store.transact({ ...unit, census: true })).answer.census).toEqual([])
  })

  it('whose effect has run is told what it returned', async () => {
    const { store } = new SqliteDestination()
    const apply = { kind: 'apply', generation: 1, fingerprint: undefined } as const
    const effect = () => ({ value: 7, text: undefined })
    const done = await store.transact({ ...seeing(apply), effect })
    expect(done.effect).toEqual({ status: 'returned', value: 7 })
    const bare = await failure(store.transact(seeing(apply)))
    const message = 'SQLite: the unit asks for an effect that it does not have'
    expect(bare).toMatchObject({ code: 'store_unavailable', message })
  })

  it('that names no operation has none to put', async () => {
    const { store, guard } = new SqliteDestination()
    expect((await store.transact(seeing(put))).effect).toBeUndefined()
    expect(await guard.unsettled()).toEqual([])
    await store.transact(seeing(put, 'x'))
    expect(await guard.unsettled()).toMatchObject([{ operationId: 'x', status: 'unknown' }])
  })
})

describe('the record of an operation', () => {
  it('comes back as it was put, in flight, overdue, unknown and applied', async () => {
    let time = 1000
    const { store, guard } = new SqliteDestination(undefined, { now: () => time })
    const seen = async () => (await store.view(job, 'x')).operation
    const known = { generation: 1, fingerprint: 'f' }
    const attempt = { ...known, attemptId: expect.any(String) }
    let fail: (error: Error) => void = () => {}
    const perform = () =>
      new Promise<never>((_, reject) => {
        fail = reject
      })
    const write = intent(1, 'x', { fingerprint: 'f' })
    const call = failure(guard.effect(write, perform, { deadlineMs: 10 }))
    await new Promise((resolve) => setImmediate(resolve))
    time += 3
    expect(await seen()).toEqual({
      ...attempt,
      status: 'in_flight',
      overdue: false,
      remainingMs: 7,
    })
    time += 8
    expect(await seen()).toEqual({ ...attempt, status: 'in_flight', overdue: true, remainingMs: 0 })
    fail(new Error('boom'))
    await call
    expect(await seen()).toEqual({ ...attempt, status: 'unknown' })
    await guard.resolve({ jobId: 'job', operationId: 'x' }, { status: 'applied', result: 1 })
    expect(await seen()).toEqual({ ...known, status: 'applied', result: '1' })
  })

  it('is pruned whether its job is sealed or not, unless told', async () => {
    const d = new SqliteDestination()
    await d.write(intent(1, 'x'))
    expect(await d.store.prune({ olderThanMs: 0, sealedOnly: true })).toEqual({ pruned: 0 })
    expect(await d.store.prune({ olderThanMs: 0 })).toEqual({ pruned: 1 })
  })
})

describe('a transaction of the store', () => {
  it("never undoes one of its user's", () => {
    const db = open()
    const transaction = new SqliteTransaction(db)
    db.exec('CREATE TABLE mine (a); BEGIN; INSERT INTO mine VALUES (1)')
    onTestFinished(() => void db.exec('ROLLBACK'))
    expect(() => transaction.begin()).toThrow(/within a transaction/)
    expect(db.prepare('SELECT a FROM mine').pluck().all()).toEqual([1])
  })
})
