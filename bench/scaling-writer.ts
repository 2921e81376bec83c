/** One of the processes of `bench/scaling/stores.ts`: guarded writes to a file, 32 in flight. */

import { WriteGuard } from 'writefence'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'
import { load } from './scaling/load.ts'
import { GENERATION, jobOf, leaseOf, operationOf } from './scaling/site.ts'
import { creditStatement } from './scaling/sqlite-site.ts'

const [path = '', name = '', ms] = process.argv.slice(2)
const db = openSqlite(path)
const credit = creditStatement(db)
const guard = new WriteGuard(new SqliteFenceStore(db))
const begun = process.hrtime.bigint()
let written = 0

const { perSecond } = await load(32, Number(ms), () => {
  const job = written % 1000
  written += 1
  const token = { jobId: jobOf(job), generation: GENERATION, leaseId: leaseOf(job) }
  const operationId = `${name}-${begun}-${operationOf(written)}`
  return guard.write({ token, operationId }, () => credit(job))
})
process.send?.(perSecond)
await guard.close()
db.close()
process.disconnect()
