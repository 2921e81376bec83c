/** All rows of a database, whatever its tables are: to tell states apart, to empty, to restore. */

import type Database from 'better-sqlite3'

export type Rows = ReadonlyMap<string, readonly (readonly unknown[])[]>

export interface Tables {
  /** Every row of every table, in the order of their keys. */
  digest(): string
  clear(): void
  /** What a backup has, and how it is put back. */
  save(): Rows
  load(rows: Rows): void
}

/** The tables that are there now; `writefence_schema` is set up once and stays. */
export function tablesOf(db: Database.Database): Tables {
  const names = db
    .prepare(
      `SELECT name FROM sqlite_schema
       WHERE type = 'table' AND name <> 'writefence_schema' ORDER BY name`,
    )
    .pluck()
    .all() as string[]
  const tables = names.map((name) => {
    const all = db.prepare(`SELECT * FROM ${name}`).raw()
    const marks = all.columns().map(() => '?')
    return {
      name,
      all,
      clear: db.prepare(`DELETE FROM ${name}`),
      insert: db.prepare(`INSERT INTO ${name} VALUES (${marks.join(', ')})`),
    }
  })
  const clear = () => {
    for (const table of tables) table.clear.run()
  }
  return {
    digest: () => JSON.stringify(tables.map(({ all }) => all.all())),
    clear,
    save: () => new Map(tables.map(({ name, all }) => [name, all.all() as unknown[][]])),
    load(rows) {
      clear()
      for (const { name, insert } of tables) {
        for (const row of rows.get(name) ?? []) insert.run(...row)
      }
    },
  }
}
