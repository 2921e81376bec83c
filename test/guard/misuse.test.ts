import { describe, expect, it, vi } from 'vitest'
import { WriteGuard } from 'writefence'
import { openSqlite, SqliteFenceStore, SqliteLeaseStore } from 'writefence/sqlite'

const anything = (value: unknown) => value as never

describe('misuse is named at once', () => {
  it('a member of an intent that is misspelled may be a check that is off', async () => {
    const guard = new WriteGuard(new SqliteFenceStore(openSqlite(':memory:')))
    const apply = vi.fn()
    const intent = { token: { jobId: 'j', generation: 1 }, operationID: 'x' }
    await expect(guard.write(intent, apply)).rejects.toThrow('no member operationID')
    expect(apply).not.toHaveBeenCalled()
    expect(await guard.inspect('j')).toBeUndefined()
  })

  it.each([undefined, {}, 'bank.db'])('a guard without a store: %s', (store) => {
    expect(() => new WriteGuard(anything(store))).toThrow(TypeError)
    const says = 'WriteGuard needs a fence store: what it was given has no method transact'
    expect(() => new WriteGuard(anything(store))).toThrow(says)
  })

  it('a guard with a store that is of the other kind, or not all there', () => {
    const leases = new SqliteLeaseStore(openSqlite(':memory:'))
    expect(() => new WriteGuard(anything(leases))).toThrow('WriteGuard needs a fence store')
    const blind = { transact() {}, within() {}, list() {}, prune() {}, close() {} }
    expect(() => new WriteGuard(anything(blind))).toThrow('has no method view')
  })

  it('an option of an effect that there is not: nothing is reserved, nothing runs', async () => {
    const guard = new WriteGuard(new SqliteFenceStore(openSqlite(':memory:')))
    const intent = { token: { jobId: 'j', generation: 1 }, operationId: 'x' }
    const perform = vi.fn()
    const wrong: [options: unknown, says: string][] = [
      [{ deadline: 5 }, 'there is no option deadline (known: deadlineMs, onUnknown, errorsMean,'],
      [null, 'options must be an object, not null'],
      [{ onEnded: 'log' }, 'onEnded must be a function'],
    ]
    for (const [options, says] of wrong) {
      const call = guard.effect(intent, perform, anything(options))
      await expect(call).rejects.toThrow(TypeError)
      await expect(call).rejects.toThrow(says)
    }
    expect(perform).not.toHaveBeenCalled()
    expect(await guard.inspect('j')).toBeUndefined()
  })

  it('a pruning without a limit on age, or with an option that there is not', async () => {
    const guard = new WriteGuard(new SqliteFenceStore(openSqlite(':memory:')))
    const olderThanMs = 'olderThanMs must be a number (milliseconds), not undefined'
    await expect(guard.prune(anything(undefined))).rejects.toThrow(new TypeError(olderThanMs))
    const request = { olderThanMs: 0, onlySealed: true }
    const says = 'there is no option onlySealed (known: olderThanMs, limit, sealedOnly)'
    await expect(guard.prune(request)).rejects.toThrow(new TypeError(says))
  })

  it.each([undefined, null, 'bank.db', {}])('a store without a handle: %s', (db) => {
    for (const Store of [SqliteFenceStore, SqliteLeaseStore]) {
      expect(() => new Store(anything(db))).toThrow(TypeError)
      expect(() => new Store(anything(db))).toThrow('openSqlite')
    }
  })
})
