import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, onTestFinished } from 'vitest'
import { leaseStoreLaws } from 'writefence/conformance'
import { openSqlite, SqliteLeaseStore } from 'writefence/sqlite'

describe('the lease store on SQLite', () => {
  for (const law of leaseStoreLaws) {
    it(law.name, async () => {
      const folder = mkdtempSync(join(tmpdir(), 'writefence-'))
      onTestFinished(() => rmSync(folder, { recursive: true }))
      await law.run({
        open: async (now) => {
          const db = openSqlite(join(folder, 'leases.db'))
          onTestFinished(() => void db.close())
          return new SqliteLeaseStore(db, { now })
        },
      })
    })
  }
})
