import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import express from 'express'
import { describe, it, onTestFinished } from 'vitest'
import { leaseStoreLaws } from 'writefence/conformance'
import { leaseRoutes } from 'writefence/express'
import { HttpLeaseStore } from 'writefence/http'
import { openSqlite, SqliteLeaseStore } from 'writefence/sqlite'

describe('the lease store over HTTP', () => {
  for (const law of leaseStoreLaws) {
    it(law.name, async () => {
      const folder = mkdtempSync(join(tmpdir(), 'writefence-'))
      onTestFinished(() => rmSync(folder, { recursive: true }))
      await law.run({
        open: async (now) => {
          const db = openSqlite(join(folder, 'leases.db'))
          const app = express()
          app.use('/api', leaseRoutes(new SqliteLeaseStore(db, { now }), { authorize: 'none' }))
          const server = app.listen(0, '127.0.0.1')
          await new Promise((resolve) => server.once('listening', resolve))
          onTestFinished(() => {
            server.closeAllConnections()
            server.close()
            db.close()
          })
          return new HttpLeaseStore(
            `http://127.0.0.1:${(server.address() as AddressInfo).port}/api`,
          )
        },
      })
    })
  }
})
