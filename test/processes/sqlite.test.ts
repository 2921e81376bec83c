import { describe, expect, it } from 'vitest'
import { intent, refused } from '../../src/conformance/fence-destination.ts'
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

describe('a process that is killed', () => {
  it('I5, I7: has kept what it answered, each effect with its record', async () => {
    const path = temporaryFile()
    const d = new SqliteDestination(open(path))
    const child = start('killed.ts', path, 'write')
    await child.line()
    child.tell('go')
    const answered: string[] = []
    while (answered.length < 100) answered.push(await child.line())
    child.process.kill('SIGKILL')
    expect(await child.ended).toBe('SIGKILL')
    const log = d.log()
    expect(log.slice(0, answered.length)).toEqual(answered)
    expect(new Set(log).size).toBe(log.length)
    for (const operationId of log) {
      const again = await d.write(intent(5, operationId))
      expect(again).toMatchObject({ status: 'replayed', result: operationId })
    }
    const next = await d.write(intent(5, `op ${log.length}`))
    expect(next.status).toBe('applied')
    await refused(d.write(intent(4)), 'stale', { highestGeneration: 5 })
  }, 60_000)

  it('R71: leaves its effect in flight, then unknown, until that is resolved', async () => {
    const path = temporaryFile()
    let ahead = 0
    const d = new SqliteDestination(open(path), { now: () => Date.now() + ahead })
    const child = start('killed.ts', path, 'effect')
    await child.line()
    child.tell('go')
    expect(await child.line()).toBe('begun')
    child.process.kill('SIGKILL')
    await child.ended
    const retry = (generation: number) => d.guard.effect(intent(generation, 'x'), async () => 'ran')
    await refused(retry(5), 'in_flight')
    expect((await d.write(intent(5, 'y'))).status).toBe('applied')
    await refused(d.write(intent(6, 'z')), 'in_flight')
    ahead = 60_000
    await refused(retry(6), 'outcome_unknown')
    await refused(d.write(intent(6, 'z')), 'outcome_unknown')
    await d.guard.resolve({ jobId: 'job', operationId: 'x' }, { status: 'not_applied' })
    expect((await d.write(intent(6, 'z'))).status).toBe('applied')
    expect((await retry(6)).result).toBe('ran')
  }, 60_000)
})
