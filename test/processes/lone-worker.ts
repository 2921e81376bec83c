/** A worker that claims a job and works until it is killed, or asked to stop. */

import { once } from 'node:events'
import { runWithLease } from 'writefence'
import { openSqlite, SqliteLeaseStore } from 'writefence/sqlite'

const [path = '', ttl = ''] = process.argv.slice(2)
const stop = new AbortController()
process.once('SIGTERM', () => stop.abort())
// Something has to keep the process alive while the handler waits.
const alive = setInterval(() => {}, 1_000)

const outcome = await runWithLease(
  new SqliteLeaseStore(openSqlite(path)),
  { jobId: 'job', owner: 'lone', ttlMs: Number(ttl), signal: stop.signal },
  async ({ signal, generation }) => {
    console.log(`working under ${generation}`)
    await once(signal, 'abort')
  },
)
console.log(outcome.status)
clearInterval(alive)
