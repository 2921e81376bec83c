/** Waits for the word, then opens the database and sets up both stores. */

import { once } from 'node:events'
import { openSqlite, SqliteFenceStore, SqliteLeaseStore } from 'writefence/sqlite'

const [path = ''] = process.argv.slice(2)
console.log('ready')
await once(process.stdin, 'data')
try {
  const db = openSqlite(path)
  new SqliteFenceStore(db)
  new SqliteLeaseStore(db)
  const tables = db.prepare('SELECT component, version FROM writefence_schema ORDER BY 1').all()
  console.log(JSON.stringify(tables))
  db.close()
} catch (error) {
  console.log(String(error))
}
process.exit()
