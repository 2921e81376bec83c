/** A lease service that is killed. */

import express from 'express'
import { leaseRoutes } from '../../src/express/index.ts'
import { openSqlite, SqliteLeaseStore } from '../../src/storage/sqlite/index.ts'

const [path = '', port = '0'] = process.argv.slice(2)
const app = express()
app.use(leaseRoutes(new SqliteLeaseStore(openSqlite(path)), { authorize: 'none' }))
const server = app.listen(Number(port), '127.0.0.1', () => {
  process.send?.({ port: (server.address() as { port: number }).port })
})
