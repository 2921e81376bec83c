/** The tables of both stores, their versions, and what is expected of a handle. */

import { prepare, type SqliteDatabase, unavailable } from './sqlite-database.ts'

/** One store's tables; `version` rises with every change of `sql`. */
export interface SqliteSchema {
  readonly component: string
  readonly version: number
  readonly sql: string
}

const VERSIONS = `
CREATE TABLE IF NOT EXISTS writefence_schema (
  component TEXT PRIMARY KEY,
  version   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`

export const FENCE_SCHEMA: SqliteSchema = {
  component: 'fence',
  version: 1,
  sql: `
CREATE TABLE IF NOT EXISTS writefence_fence (
  scope      TEXT    NOT NULL,
  job_id     TEXT    NOT NULL,
  generation INTEGER NOT NULL CHECK (generation BETWEEN 1 AND 999999999999999),
  holder     TEXT    NOT NULL CHECK (holder IN ('none', 'unbound', 'lease')),
  lease_id   TEXT    CHECK ((holder = 'lease') = (lease_id IS NOT NULL)),
  sealed     INTEGER NOT NULL CHECK (sealed IN (0, 1)),
  PRIMARY KEY (scope, job_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS writefence_operation (
  scope        TEXT    NOT NULL,
  job_id       TEXT    NOT NULL,
  operation_id TEXT    NOT NULL,
  generation   INTEGER NOT NULL,
  fingerprint  TEXT,
  -- in flight: attempt_id and deadline; unknown: attempt_id alone; applied: applied_at, result
  attempt_id   TEXT    CHECK ((attempt_id IS NULL) = (applied_at IS NOT NULL)),
  deadline     INTEGER CHECK (deadline IS NULL OR attempt_id IS NOT NULL),
  applied_at   INTEGER,
  result       TEXT    CHECK (result IS NULL OR applied_at IS NOT NULL),
  PRIMARY KEY (scope, job_id, operation_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS writefence_operation_unsettled
  ON writefence_operation (scope, job_id, generation) WHERE attempt_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS writefence_operation_applied
  ON writefence_operation (applied_at) WHERE applied_at IS NOT NULL;
`,
}

export const LEASE_SCHEMA: SqliteSchema = {
  component: 'lease',
  version: 1,
  sql: `
CREATE TABLE IF NOT EXISTS writefence_lease (
  job_id      TEXT    PRIMARY KEY,
  generation  INTEGER NOT NULL CHECK (generation BETWEEN 1 AND 999999999999999),
  status      TEXT    NOT NULL CHECK (status IN ('leased', 'released', 'completed')),
  owner       TEXT    CHECK (owner IS NOT NULL OR status <> 'leased'),
  lease_id    TEXT    CHECK ((lease_id IS NULL) = (owner IS NULL)),
  ttl         INTEGER CHECK ((status = 'leased') = (ttl IS NOT NULL) AND ttl > 0),
  lease_until INTEGER CHECK ((status = 'leased') = (lease_until IS NOT NULL)),
  ended_by    TEXT    CHECK (ended_by IN ('holder', 'operator')),
  lapsed      INTEGER NOT NULL CHECK (lapsed IN (0, 1)),
  ended_at    INTEGER CHECK (ended_at IS NULL OR status <> 'leased'),
  CHECK ((status = 'leased') = (ended_by IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS writefence_lease_ended
  ON writefence_lease (ended_at) WHERE ended_at IS NOT NULL;
`,
}

const SETUP_TIMEOUT_MS = 10_000

/**
 * Creates the tables of a store where they are missing; safe when several processes do so at once.
 * @throws TypeError inside a transaction, StoreUnavailableError where the database cannot be set
 * up or has the tables of another version
 */
export function setUpSchema(db: SqliteDatabase, schema: SqliteSchema): void {
  if (typeof db?.prepare !== 'function') {
    throw new TypeError('db must be a handle of better-sqlite3, such as openSqlite(path) gives')
  }
  if (db.open && db.inTransaction) {
    throw new TypeError('a store must not be constructed inside a transaction of its handle')
  }
  try {
    withBusyTimeout(db, SETUP_TIMEOUT_MS, () => {
      if (versionOf(db, schema) === undefined) create(db, schema)
    })
  } catch (error) {
    throw unavailable(error)
  }
}

function create(db: SqliteDatabase, schema: SqliteSchema): void {
  db.exec('BEGIN IMMEDIATE')
  try {
    db.exec(VERSIONS)
    // Another process may have won the race for the lock.
    if (versionOf(db, schema) === undefined) {
      db.exec(schema.sql)
      prepare(db, 'INSERT INTO writefence_schema (component, version) VALUES (?, ?)').run(
        schema.component,
        schema.version,
      )
    }
    db.exec('COMMIT')
  } catch (error) {
    if (db.inTransaction) db.exec('ROLLBACK')
    throw error
  }
}

/** The version in the database; `undefined` where there is none yet. */
function versionOf(db: SqliteDatabase, { component, version }: SqliteSchema): number | undefined {
  const tables = prepare(db, "SELECT 1 FROM sqlite_schema WHERE name = 'writefence_schema'").get()
  if (tables === undefined) return undefined
  const row = prepare(db, 'SELECT version FROM writefence_schema WHERE component = ?').get(
    component,
  ) as { version: number } | undefined
  if (row !== undefined && row.version !== version) {
    const advice = row.version > version ? 'upgrade writefence' : 'migrate the tables'
    throw new Error(
      `the ${component} tables have version ${row.version}, and ${version} is needed: ${advice}`,
    )
  }
  return row?.version
}

/** Sets the handle's busy time-out for the time of `work`, and puts the old one back. */
function withBusyTimeout(db: SqliteDatabase, timeoutMs: number, work: () => void): void {
  const before = prepare(db, 'PRAGMA busy_timeout').get() as { timeout: number }
  db.exec(`PRAGMA busy_timeout = ${timeoutMs}`)
  try {
    work()
  } finally {
    db.exec(`PRAGMA busy_timeout = ${before.timeout}`)
  }
}

const warned = new WeakSet<SqliteDatabase>()

/**
 * Emits a process warning (code `WRITEFENCE_DURABILITY`), once a handle, where a committed fence
 * can be lost with the power: a lost fence lets stale writes in.
 */
export function warnIfLessDurable(db: SqliteDatabase): void {
  if (db.memory || warned.has(db)) return
  const { synchronous } = prepare(db, 'PRAGMA synchronous').get() as { synchronous: number }
  const { journal_mode: journal } = prepare(db, 'PRAGMA journal_mode').get() as {
    journal_mode: string
  }
  if (synchronous >= 2 && journal !== 'off' && journal !== 'memory') return
  warned.add(db)
  process.emitWarning(
    `the SQLite handle of ${db.name} (journal_mode ${journal}, synchronous ${synchronous})` +
      ' can lose committed fences and leases at a power cut:' +
      ' use openSqlite, or PRAGMA synchronous = FULL',
    { type: 'WritefenceWarning', code: 'WRITEFENCE_DURABILITY' },
  )
}
