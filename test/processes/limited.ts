/** A destination whose disk fills up: runs what each line asks for, and says how it ended. */

import { createInterface } from 'node:readline'
import { WritefenceError, WriteGuard } from 'writefence'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'

const [path = ''] = process.argv.slice(2)
const db = openSqlite(path)
const guard = new WriteGuard(new SqliteFenceStore(db))
db.exec('CREATE TABLE IF NOT EXISTS log (text TEXT NOT NULL, ballast BLOB NOT NULL)')
const insert = db.prepare('INSERT INTO log (text, ballast) VALUES (?, zeroblob(3000))')

async function write(operationId: string): Promise<string> {
  const token = { jobId: 'job', generation: 5, leaseId: 'a' }
  try {
    const { status } = await guard.write({ token, operationId }, () => {
      insert.run(operationId)
      return { operationId }
    })
    return status
  } catch (error) {
    return error instanceof WritefenceError ? error.code : String((error as { code?: string }).code)
  }
}

console.log('ready')
for await (const line of createInterface({ input: process.stdin })) {
  const { pragma, operations = [] } = JSON.parse(line) as {
    pragma?: string
    operations?: string[]
  }
  if (pragma !== undefined) db.pragma(pragma)
  console.log(JSON.stringify(await Promise.all(operations.map(write))))
}
