/** A destination in a process of its own: Express, a table, the guard in the same SQLite file. */

import type { AddressInfo } from 'node:net'
import express from 'express'
import { WriteGuard } from 'writefence'
import { fencing, fencingErrors } from 'writefence/express'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'

const [path = ''] = process.argv.slice(2)
const db = openSqlite(path)
db.exec('CREATE TABLE log (operation TEXT NOT NULL, generation INTEGER NOT NULL)')
const insert = db.prepare('INSERT INTO log (operation, generation) VALUES (?, ?)')

const fence = fencing(new WriteGuard(new SqliteFenceStore(db)))
const app = express()
app.post('/log', fence, async (req, res) => {
  const { token, operationId } = fence.of(req)
  await fence.of(req).write(() => void insert.run(operationId, token.generation))
  res.status(201).end()
})
app.use(fencingErrors())

const server = app.listen(0, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
