/** Makes one guarded write on PostgreSQL, and stops itself in the middle of its effect. */

import pg from 'pg'
import { WriteGuard } from 'writefence'
import { PostgresFenceStore } from 'writefence/postgres'

const [address = '{}', schema = ''] = process.argv.slice(2)
const limits = { timeoutMs: 1000, effectTimeoutMs: 1000 }
const pool = new pg.Pool(JSON.parse(address))
const guard = new WriteGuard(new PostgresFenceStore(pool, { schema, ...limits }))

const token = { jobId: 'job', generation: 1, leaseId: 'stopped' }
const outcome = await guard
  .write({ token, operationId: 'x' }, async (tx) => {
    await tx.query(`INSERT INTO ${schema}.log (text) VALUES ('stopped')`)
    console.log('in the effect')
    process.kill(process.pid, 'SIGSTOP')
    await tx.query(`INSERT INTO ${schema}.log (text) VALUES ('continued')`)
  })
  .catch((error: unknown) => error)
console.log(JSON.stringify(outcome))
process.exit()
