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
    expect(() => new WriteGuard(anything(store))).toThrow('fence store')
  })

  it.each([undefined, null, 'bank.db', {}])('a store without a handle: %s', (db) => {
    for (const Store of [SqliteFenceStore, SqliteLeaseStore]) {
      expect(() => new Store(anything(db))).toThrow(TypeError)
      expect(() => new Store(anything(db))).toThrow('openSqlite')
    }
  })
})
