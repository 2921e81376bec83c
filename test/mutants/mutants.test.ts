import { describe, expect, it } from 'vitest'
import { files, read } from '../house/project.ts'
import { engineOf, mutants, occurrences, testsOf } from './mutants.ts'

describe('the mutants', () => {
  it('fit the sources: each changes exactly one place', () => {
    const stale = mutants.filter((mutant) => occurrences(mutant, read(mutant.file)) !== 1)
    expect(stale.map(({ file, what }) => `${file}: ${what}`)).toEqual([])
  })

  it('change something', () => {
    expect(mutants.filter(({ find, replace }) => find === replace)).toEqual([])
  })

  it('are told apart by what they do', () => {
    const names = mutants.map(({ file, what }) => `${file}: ${what}`)
    expect(new Set(names).size).toBe(names.length)
  })

  it('are many enough to stand for the protocol', () => {
    expect(mutants.length).toBeGreaterThanOrEqual(100)
  })

  it.each(['sqlite', 'postgres', 'mysql', 'redis'])('are made of %s as well', (engine) => {
    const own = mutants.filter(({ file }) => file.startsWith(`src/storage/${engine}/`))
    expect(own.length).toBeGreaterThanOrEqual(25)
  })

  it('are put to tests that are there', () => {
    const tests = files('test/').filter(({ path }) => path.endsWith('.test.ts'))
    const missing = mutants
      .flatMap(testsOf)
      .flat()
      .filter((name) => !tests.some(({ path }) => path.includes(name)))
    expect([...new Set(missing)]).toEqual([])
  })

  it.each([
    ['src/storage/postgres/postgres-unit.ts', 'postgres'],
    ['src/storage/postgres/postgres-transactions.ts', 'postgres'],
    ['src/storage/ruled-lease-store.ts', 'postgres'],
    ['src/storage/mysql/mysql-unit.ts', 'mysql'],
    ['src/storage/redis/redis-lease-store.ts', 'redis'],
    ['src/storage/sqlite/sqlite-writer.ts', undefined],
    ['src/guard/verdict.ts', undefined],
  ])('of %s need the server of %s', (file, engine) => {
    expect(engineOf({ file, what: '', find: '', replace: '' })).toBe(engine)
  })
})
