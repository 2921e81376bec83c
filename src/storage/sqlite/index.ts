/** SQLite, the embedded default: better-sqlite3, one host, one file. */

export { type OpenSqliteOptions, openSqlite } from './open-sqlite.ts'
export type { SqliteDatabase, SqliteStatement, SqliteStoreOptions } from './sqlite-database.ts'
export { SqliteFenceStore } from './sqlite-fence-store.ts'
export { SqliteLeaseStore } from './sqlite-lease-store.ts'
