import { describe, expect, it } from 'vitest'
import { read } from '../house/project.ts'
import { mutants, occurrences } from './mutants.ts'

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
})
