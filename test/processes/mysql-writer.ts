/** A destination that stops in the middle of a write: says `holding`, then waits to be ended. */

import { createPool } from 'mysql2/promise'
import { WriteGuard } from 'writefence'
import { MysqlFenceStore } from 'writefence/mysql'

const [host = '', port, user = '', password = '', database = '', table] = process.argv.slice(2)
const pool = createPool({ host, port: Number(port), user, password, database })
const guard = new WriteGuard(new MysqlFenceStore(pool, { timeoutMs: 1000, effectTimeoutMs: 1000 }))
const intent = { token: { jobId: 'job', generation: 7, leaseId: 'a' }, operationId: 'x' }

const said = await guard
  .write(intent, async (tx) => {
    await tx.query(`INSERT INTO ${table} (text) VALUES ('of 7')`)
    console.log('holding')
    await new Promise(() => {})
  })
  .catch((error: { code: string }) => error)
console.log('code' in said ? said.code : said.status)
process.exit()
