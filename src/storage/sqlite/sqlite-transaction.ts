/** One IMMEDIATE transaction of a handle, which callbacks of users run in and may end. */

import {
  isOccupied,
  prepare,
  type SqliteDatabase,
  type SqliteStatement,
} from './sqlite-database.ts'

/** An effect has ended the transaction that it ran in: by COMMIT, ROLLBACK, or a full disk. */
export class TransactionEnded extends Error {
  /** `cause` is the effect's own error, where it threw one. */
  constructor(options?: ErrorOptions) {
    super(
      'the effect has ended the transaction of the guard: leave COMMIT and ROLLBACK to it',
      options,
    )
  }
}

export class SqliteTransaction {
  readonly #db: SqliteDatabase
  readonly #begin: SqliteStatement
  readonly #commit: SqliteStatement
  readonly #rollback: SqliteStatement
  readonly #mark: SqliteStatement
  readonly #marked: SqliteStatement
  #mine = 0
  #open = false

  constructor(db: SqliteDatabase) {
    this.#db = db
    // Tells a commit from a rollback after the fact. A temporary table takes part in transactions
    // like any other, and costs no durable write.
    db.exec(`CREATE TEMP TABLE IF NOT EXISTS writefence_marker (n INTEGER NOT NULL);
      INSERT INTO temp.writefence_marker (n)
        SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM temp.writefence_marker)`)
    this.#begin = prepare(db, 'BEGIN IMMEDIATE')
    this.#commit = prepare(db, 'COMMIT')
    this.#rollback = prepare(db, 'ROLLBACK')
    this.#mark = prepare(db, 'UPDATE temp.writefence_marker SET n = n + 1 RETURNING n')
    this.#marked = prepare(db, 'SELECT n FROM temp.writefence_marker')
  }

  /** Takes the write lock. @throws Error of the driver, `SQLITE_BUSY` where others have it */
  begin(): void {
    // Left over from a rollback that failed: nothing of it may get into a later commit.
    if (this.#open) this.rollback()
    this.#begin.run()
    this.#open = true
  }

  /** Leaves a mark that shares the fate of the transaction, for {@link wasCommitted}. */
  mark(): void {
    this.#mine = (this.#mark.get() as { n: number }).n
  }

  commit(): void {
    this.#commit.run()
    this.#open = false
  }

  /** Undoes what is open, ours or a callback's. Where it throws, the next begin tries again. */
  rollback(): void {
    if (this.#db.inTransaction) this.#undo()
    this.#open = false
  }

  /**
   * An iterator that a callback has left open must not keep the transaction: what the application
   * writes next would join it, and be undone with it. SQLite itself rolls back under a read that is
   * going on (https://www.sqlite.org/lang_transaction.html); only the driver has to be told.
   */
  #undo(): void {
    try {
      this.#rollback.run()
    } catch (error) {
      if (!isOccupied(error)) throw error
      this.#db.unsafeMode(true)
      try {
        this.#rollback.run()
      } finally {
        this.#db.unsafeMode(false)
      }
    }
  }

  /** Whether the transaction that was marked last was committed; asked once it is over. */
  wasCommitted(): boolean {
    return (this.#marked.get() as { n: number }).n === this.#mine
  }

  /** Whether the handle is inside a transaction that was not begun here. */
  get isForeign(): boolean {
    return this.#db.inTransaction && !this.#open
  }
}
