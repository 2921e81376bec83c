/** The destination of these examples: a table, and the guard in the same SQLite database. */

import { type FencingToken, WriteGuard, WriteRefusedError } from 'writefence'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'

const db = openSqlite(':memory:')
db.exec('CREATE TABLE log (job TEXT NOT NULL, text TEXT NOT NULL)')
const insert = db.prepare('INSERT INTO log (job, text) VALUES (?, ?)')
const select = db.prepare<[string], string>('SELECT text FROM log WHERE job = ? ORDER BY rowid')

/** The guard, for what goes beyond a write. */
export const guard = new WriteGuard(new SqliteFenceStore(db))

/**
 * Writes a line for the job of the token. Says `written`, or the code of the refusal.
 * @throws RangeError where the number is no generation
 */
export async function write(
  token: FencingToken,
  text: string,
): Promise<'written' | WriteRefusedError['code']> {
  try {
    await guard.write({ token }, () => void insert.run(token.jobId, text))
    return 'written'
  } catch (error) {
    if (error instanceof WriteRefusedError) return error.code
    throw error
  }
}

/** What was written for the job, in order. */
export function written(jobId: string): string[] {
  return select.pluck().all(jobId)
}
