/** SQLite has no server: two files, which the processes of the run share. */

import Database from 'better-sqlite3'
import { type Ground, type Server, tracesOf } from './server.ts'

export async function sqliteFiles({ directory }: Ground): Promise<Server> {
  const path = `${directory}/bank.db`
  const db = new Database(path)
  db.exec(`CREATE TABLE effects (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT NOT NULL, operation TEXT NOT NULL,
    generation INTEGER NOT NULL, lease TEXT NOT NULL, nonce TEXT NOT NULL);
    CREATE INDEX of_operation ON effects (job, operation)`)
  db.close()
  return {
    engine: 'sqlite',
    where: directory,
    harms: [],
    async effects() {
      const all = new Database(path)
      const rows = all.prepare('SELECT * FROM effects ORDER BY seq').all()
      all.close()
      return tracesOf(rows)
    },
    async close() {},
  }
}
