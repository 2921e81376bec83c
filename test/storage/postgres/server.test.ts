import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import type { Query } from '../../../src/storage/postgres/postgres-database.ts'
import {
  assertTables,
  FENCE_TABLES,
  tablesIn,
} from '../../../src/storage/postgres/postgres-schema.ts'

// Servers of a kind that is not at hand: all that is asked of them is one row.
const good = { version: 1, server: 15, encoding: 'UTF8', fsync: 'on' }
const ask = (said: object) => {
  const query = (async () => [{ ...good, ...said }]) as unknown as Query
  return assertTables(query, FENCE_TABLES, tablesIn(undefined))
}

describe('what is expected of a server', () => {
  it('is met by one that is new enough', async () => {
    await ask({ server: 12 })
  })

  it('is not met by one that is too old', async () => {
    await expect(ask({ server: 11 })).rejects.toMatchObject({
      code: 'store_unavailable',
      message: 'PostgreSQL 11 is too old: writefence needs 12 or newer',
    })
  })

  it('is met, with a warning, by one that may lose what it has committed', async () => {
    const warned = once(process, 'warning')
    await ask({ fsync: 'off' })
    expect(await warned).toMatchObject([{ code: 'WRITEFENCE_DURABILITY', message: /fsync = off/ }])
  })
})
