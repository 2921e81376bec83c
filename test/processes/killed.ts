/** Waits for the word, then writes and says so, on and on, or begins an effect that never ends. */

import { once } from 'node:events'
import { writeSync } from 'node:fs'
import { WriteGuard } from 'writefence'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'

const [path = '', what = ''] = process.argv.slice(2)
const db = openSqlite(path)
const guard = new WriteGuard(new SqliteFenceStore(db))
const insert = db.prepare('INSERT INTO log (text) VALUES (?)')
const token = { jobId: 'job', generation: 5, leaseId: 'a' }
/** Past any buffer: what is said is said, whatever happens next. */
const say = (text: string) => writeSync(1, `${text}\n`)

say('ready')
await once(process.stdin, 'data')
if (what === 'effect') {
  await guard.effect({ token, operationId: 'x' }, () => {
    say('begun')
    return new Promise<never>(() => {})
  })
}
for (let i = 0; ; i += 1) {
  const operationId = `op ${i}`
  const write = { token, operationId }
  await guard.write(write, () => {
    insert.run(operationId)
    return operationId
  })
  say(operationId)
}
