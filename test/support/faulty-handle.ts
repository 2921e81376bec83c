/** A real handle whose statements fail when told to: the faults that a disk has. */

import type { Database } from 'better-sqlite3'

/** How a statement fails: before it has done its work, or after (its answer is lost). */
interface Fault {
  readonly sql: string
  readonly when: 'before' | 'after'
  readonly error: Error
}

export interface FaultyHandle {
  readonly handle: Database
  /** The next run of the statement fails. */
  failNext(fault: Fault): void
}

export function faultyHandle(db: Database): FaultyHandle {
  const armed: Fault[] = []
  const handle = new Proxy(db, {
    get(target, name) {
      if (name === 'prepare') return prepare
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  function prepare(sql: string) {
    return new Proxy(db.prepare(sql), {
      get(statement, name) {
        const value: unknown = Reflect.get(statement, name, statement)
        if (typeof value !== 'function') return value
        if (name !== 'run') return value.bind(statement)
        return (...parameters: unknown[]) => {
          const at = armed.findIndex((fault) => fault.sql === sql)
          if (at < 0) return value.apply(statement, parameters)
          const [fault] = armed.splice(at, 1)
          if (fault?.when === 'after') value.apply(statement, parameters)
          throw fault?.error
        }
      },
    })
  }
  return { handle, failNext: (fault) => void armed.push(fault) }
}
