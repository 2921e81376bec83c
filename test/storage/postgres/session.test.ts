import { describe, expect, it } from 'vitest'
import { PostgresSession } from '../../../src/storage/postgres/postgres-transactions.ts'

/** A client whose connection outlives whatever its pool is told, and hears everything. */
function undeadClient(failure?: Error) {
  const said: string[] = []
  const client = {
    query: async (text: string) => {
      said.push(text)
      if (failure !== undefined) throw failure
      return { rows: [] }
    },
    release: (destroy?: boolean | Error) => void said.push(`release(${destroy ?? ''})`),
    on: () => {},
    removeListener: () => {},
  }
  return { said, session: new PostgresSession(client, performance.now() + 60_000) }
}

describe('a session that was given up', () => {
  it('says nothing more: what is late can no longer commit', async () => {
    const { said, session } = undeadClient()
    session.destroy()
    await expect(session.query('COMMIT')).rejects.toMatchObject({ code: 'store_unavailable' })
    expect(said).toEqual(['release(true)'])
  })

  it('is closed where it cannot be rolled back', async () => {
    const { said, session } = undeadClient(new Error('lost'))
    await session.abandon()
    expect(said).toEqual(['ROLLBACK', 'release(true)'])
  })

  it('is given back once, whatever is done to it', async () => {
    const { said, session } = undeadClient()
    session.release()
    session.release()
    session.destroy()
    await session.abandon()
    expect(said).toEqual(['release()'])
  })
})
