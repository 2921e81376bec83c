import { describe, expect, it } from 'vitest'
import { open, SqliteDestination, temporaryFile } from '../support/sqlite-destination.ts'
import { start } from './spawn.ts'

describe('R107: eight processes that set up one file at the same moment', () => {
  it('all find the same tables', async () => {
    const path = temporaryFile()
    const children = Array.from({ length: 8 }, () => start('set-up.ts', path))
    await Promise.all(children.map((child) => child.line()))
    for (const child of children) child.tell('go')
    const expected = JSON.stringify([
      { component: 'fence', version: 1 },
      { component: 'lease', version: 1 },
    ])
    const answers = await Promise.all(children.map((child) => child.line()))
    expect(answers).toEqual(children.map(() => expected))
    expect(await Promise.all(children.map((child) => child.ended))).toEqual(children.map(() => 0))
  }, 60_000)
})

describe('R106: two processes on one file, 500 guard calls each', () => {
  it('every call ends in a verdict, and what was accepted never falls', async () => {
    const path = temporaryFile()
    const d = new SqliteDestination(open(path))
    const children = ['a', 'b'].map((name) => start('writer.ts', path, name, '500'))
    await Promise.all(children.map((child) => child.line()))
    for (const child of children) child.tell('go')
    const endings = await Promise.all(
      children.map(async (child) => JSON.parse(await child.line()) as Record<string, number>),
    )
    const total = (code: string) => endings.reduce((sum, each) => sum + (each[code] ?? 0), 0)
    const log = d.log()
    expect(log).toEqual(log.toSorted())
    expect(new Set(log).size).toBe(log.length)
    expect(total('applied')).toBe(log.length)
    const verdicts = ['applied', 'replayed', 'stale', 'conflict'].map(total)
    expect(verdicts.reduce((sum, each) => sum + each)).toBe(1000)
    expect((await d.guard.inspect('job'))?.highestGeneration).toBe(500)
  }, 60_000)
})
