/** A destination on SQLite with a table of effects, for tests. */

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Database } from 'better-sqlite3'
import { onTestFinished, vi } from 'vitest'
import {
  type DecisionEvent,
  type FaultEvent,
  type Outcome,
  WriteGuard,
  type WriteGuardOptions,
  type WriteIntent,
} from 'writefence'
import { openSqlite, SqliteFenceStore, type SqliteStoreOptions } from 'writefence/sqlite'

export type Options = SqliteStoreOptions & WriteGuardOptions

/** A path for a database that is gone with the test. */
export function temporaryFile(name = 'destination.sqlite'): string {
  const folder = mkdtempSync(join(tmpdir(), 'writefence-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return join(folder, name)
}

/** Opens a database and has it closed with the test. */
export function open(path = ':memory:'): Database {
  const db = openSqlite(path)
  onTestFinished(() => void db.close())
  return db
}

export class SqliteDestination {
  readonly db: Database
  readonly store: SqliteFenceStore<Database>
  readonly guard: WriteGuard<Database, 'sync'>

  constructor(db: Database = open(), options: Options = {}) {
    db.exec('CREATE TABLE IF NOT EXISTS log (text TEXT NOT NULL)')
    this.db = db
    const { codec, deadlineMs, dangerouslyFailOpen, ...storeOptions } = options
    this.store = new SqliteFenceStore(db, storeOptions)
    this.guard = new WriteGuard(this.store, { codec, deadlineMs, dangerouslyFailOpen })
  }

  /** An effect that appends to the table. */
  appends<R = undefined>(text: string, result?: R): (tx: Database) => R {
    return (tx) => {
      tx.prepare('INSERT INTO log (text) VALUES (?)').run(text)
      return result as R
    }
  }

  /** A write that appends its operation id, or the text, and returns it. */
  write(write: WriteIntent, text = write.operationId ?? 'effect'): Promise<Outcome<string>> {
    return this.guard.write(write, this.appends(text, text))
  }

  /** The texts, in order. */
  log(db = this.db): string[] {
    return db.prepare<[], string>('SELECT text FROM log ORDER BY rowid').pluck().all()
  }
}

/**
 * Stops the monotonic clock until the test ends: a group of calls is then bounded by its size
 * alone, however busy the machine is. Moves on by what the returned function is given.
 */
export function stopMonotonicTime(): (ms: number) => void {
  let time = 0
  const now = vi.spyOn(performance, 'now').mockImplementation(() => time)
  onTestFinished(() => now.mockRestore())
  return (ms) => {
    time += ms
  }
}

/** What is published to a channel until the test ends. */
export function published(name: 'decision'): DecisionEvent[]
export function published(name: 'fault'): FaultEvent[]
export function published(name: string): unknown[] {
  const events: unknown[] = []
  const keep = (event: unknown) => events.push(event)
  subscribe(`writefence:${name}`, keep)
  onTestFinished(() => void unsubscribe(`writefence:${name}`, keep))
  return events
}

/** One on a file, and another handle on that file. */
export function fileDestination(options: Options = {}) {
  const path = temporaryFile()
  const d = new SqliteDestination(open(path), options)
  return { d, other: open(path) }
}

/** Lets the event loop turn a few times, as other work of the process would. */
export async function turns(count = 5): Promise<void> {
  for (let i = 0; i < count; i += 1) await new Promise((resolve) => setImmediate(resolve))
}
