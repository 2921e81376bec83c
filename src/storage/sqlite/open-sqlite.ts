import Database from 'better-sqlite3'
import { checkDuration, checkOptionNames, type OptionNames } from '../../options.ts'

/** How a database is opened. */
export interface OpenSqliteOptions {
  /**
   * How long SQLite itself waits for another connection's lock, in milliseconds; 20 unless told.
   * This wait blocks the event loop; the stores wait much longer, but without blocking.
   */
  readonly busyTimeoutMs?: number | undefined
}

const NAMES = { busyTimeoutMs: true } satisfies OptionNames<OpenSqliteOptions>

const OPEN_TIMEOUT_MS = 10_000

/**
 * Opens a database for the stores: write-ahead log, `synchronous = FULL`, foreign keys on. The file
 * must be on a local disk of one host, since SQLite's locks and shared memory do not span hosts.
 * `':memory:'` is for tests: it ends with the handle, and its fences with it.
 * @throws TypeError where there is no path, TypeError or RangeError naming the option
 * @throws Error of the driver where the file cannot be opened, Error where it cannot have a log
 */
export function openSqlite(path: string, options: OpenSqliteOptions = {}): Database.Database {
  checkOptionNames(options, NAMES)
  // The driver makes a temporary database of nothing, whose fences would end with the process.
  if (typeof path !== 'string' || path.trim() === '') {
    throw new TypeError("openSqlite needs the path of a file, or ':memory:' for a test")
  }
  const busyTimeoutMs = checkDuration('busyTimeoutMs', options.busyTimeoutMs ?? 20, 0)
  const db = new Database(path, { timeout: OPEN_TIMEOUT_MS })
  try {
    const journal = setJournal(db)
    if (journal !== 'wal' && !db.memory) {
      throw new Error(`cannot keep a write-ahead log beside ${path} (journal_mode is ${journal})`)
    }
    db.pragma('synchronous = FULL')
    db.pragma('foreign_keys = ON')
    db.pragma(`busy_timeout = ${busyTimeoutMs}`)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** Several processes that open a new file at once can meet a lock that no time-out waits for. */
function setJournal(db: Database.Database): unknown {
  const pause = new Int32Array(new SharedArrayBuffer(4))
  for (let tries = 0; ; tries += 1) {
    try {
      return db.pragma('journal_mode = WAL', { simple: true })
    } catch (error) {
      const busy = error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')
      if (!busy || tries >= 100) throw error
      Atomics.wait(pause, 0, 0, 10)
    }
  }
}
