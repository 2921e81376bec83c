/** Waits for the word, then makes guarded writes; prints how each of them ended, counted. */

import { once } from 'node:events'
import { WritefenceError, WriteGuard } from 'writefence'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'

const [path = '', name = '', count = '0'] = process.argv.slice(2)
const db = openSqlite(path)
const guard = new WriteGuard(new SqliteFenceStore(db))
const insert = db.prepare('INSERT INTO log (text) VALUES (?)')

console.log('ready')
await once(process.stdin, 'data')
const endings: Record<string, number> = {}
for (let at = 0; at < Number(count); at += 10) {
  const calls = Array.from({ length: 10 }, (_, i) => {
    const generation = at + i + 1
    const write = {
      token: { jobId: 'job', generation, leaseId: name },
      operationId: `op ${generation}`,
    }
    return guard.write(write, () => {
      insert.run(String(generation).padStart(6, '0'))
      return name
    })
  })
  for (const one of await Promise.allSettled(calls)) {
    const { reason } = one as { reason?: unknown }
    const failed = reason instanceof WritefenceError ? reason.code : String(reason)
    const ending = one.status === 'fulfilled' ? one.value.status : failed
    endings[ending] = (endings[ending] ?? 0) + 1
  }
}
console.log(JSON.stringify(endings))
process.exit()
