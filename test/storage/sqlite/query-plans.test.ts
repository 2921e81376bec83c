import { describe, expect, it } from 'vitest'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'
import type { SqliteDatabase } from '../../../src/storage/sqlite/sqlite-database.ts'
import { prepareFenceSql } from '../../../src/storage/sqlite/sqlite-fence-sql.ts'

const db = openSqlite(':memory:')
new SqliteFenceStore(db)

/** The SQL of every statement that the store prepares, by its name. */
function statements(): [name: string, sql: string][] {
  const texts = new Map<unknown, string>()
  const recording = {
    prepare(sql: string) {
      const statement = { safeIntegers: () => {}, raw: () => statement }
      texts.set(statement, sql)
      return statement
    },
  }
  const prepared = prepareFenceSql(recording as unknown as SqliteDatabase)
  return Object.entries(prepared).flatMap(([name, statement]) => {
    const sql = texts.get(statement)
    return sql === undefined ? [] : [[name, sql] as [string, string]]
  })
}

function planOf(sql: string): string[] {
  const parameters = Array.from(sql.matchAll(/\?/g), () => null)
  const rows = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters) as { detail: string }[]
  return rows.map(({ detail }) => detail)
}

// What operators call now and then may walk all that is unsettled, but not the applied records.
const walksUnsettled = ['list']

describe('the plans of the statements', () => {
  const all = statements()

  it('are looked at for every statement', () => {
    expect(all.map(([name]) => name)).toEqual(expect.arrayContaining(['view', 'census', 'prune']))
    expect(all.length).toBeGreaterThanOrEqual(12)
  })

  it.each(all)('%s walks no table', (name, sql) => {
    const scans = planOf(sql).filter((detail) => /^SCAN (?!k$|CONSTANT ROW)/.test(detail))
    const allowed = walksUnsettled.includes(name)
      ? /USING INDEX writefence_operation_unsettled/
      : /^$/
    expect(scans.filter((detail) => !allowed.test(detail))).toEqual([])
  })

  it.each([
    ['view', 'writefence_operation_unsettled (scope=? AND job_id=?)'],
    ['oldestInFlight', 'writefence_operation_unsettled (scope=? AND job_id=?)'],
    ['oldestOverdue', 'writefence_operation_unsettled (scope=? AND job_id=?)'],
    ['census', 'writefence_operation_unsettled (scope=? AND job_id=?)'],
    ['prune', 'writefence_operation_applied (applied_at<?)'],
    ['deleteOperation', 'PRIMARY KEY (scope=? AND job_id=? AND operation_id=?)'],
  ])('%s searches %s', (name, index) => {
    const sql = all.find(([each]) => each === name)?.[1] ?? ''
    expect(planOf(sql).join('\n')).toContain(index)
  })

  it('the oldest operation is found without sorting', () => {
    for (const name of ['oldestInFlight', 'oldestOverdue']) {
      const sql = all.find(([each]) => each === name)?.[1] ?? ''
      expect(planOf(sql).join('\n')).not.toContain('TEMP B-TREE')
    }
  })
})
