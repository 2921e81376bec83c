import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Database } from 'better-sqlite3'
import { afterAll, describe, it } from 'vitest'
import { type FenceStoreContext, fenceStoreLaws } from 'writefence/conformance'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'

const folder = mkdtempSync(join(tmpdir(), 'writefence-laws-'))
afterAll(() => rmSync(folder, { recursive: true }))

function context(path: string): FenceStoreContext<Database, 'sync'> {
  const db = openSqlite(path)
  db.exec('CREATE TABLE log (text TEXT NOT NULL)')
  const append = 'INSERT INTO log (text) VALUES (?)'
  return {
    open: async (now) => new SqliteFenceStore(openSqlite(path), { now }),
    append: (tx, text) => void tx.prepare(append).run(text),
    log: async () => db.prepare<[], string>('SELECT text FROM log ORDER BY rowid').pluck().all(),
    transaction: async (body) => db.transaction(() => body(db)).immediate(),
  }
}

describe('the laws of a fence store, on SQLite', () => {
  it.each(fenceStoreLaws.map((law, index) => ({ ...law, index })))('$name', ({ run, index }) =>
    run(context(join(folder, `${index}.sqlite`))),
  )
})
