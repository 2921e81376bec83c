import { describe, expect, it } from 'vitest'
import { manifest, read } from '../house/project.ts'
import { spans, table } from './markdown.ts'

const EVIDENCE = 'docs/evidence.md'
const { scripts } = manifest()

/** What has to have its figures there: all that takes `--short`, and what runs on all engines. */
const SUITES = [
  'explore',
  'simulate',
  'kill-test',
  'mutants',
  'mutation',
  'fuzz',
  'probe:broken',
  'test:engines',
]

/** The figures: a command, its last line, the day and the commit. */
const figures = [
  ...read(EVIDENCE).matchAll(
    /^`(npm run [^`]+)` \((\d{4}-\d\d-\d\d), `([0-9a-f]{7,40})`\):?\n\n```text\n(.+)\n```$/gm,
  ),
].map(([, command = '', date = '', commit = '', line = '']) => ({ command, date, commit, line }))

/** The commands of a text, each with the file of the script that it runs. */
function commandsOf(text: string): { name: string; flags: string[] }[] {
  return spans(text)
    .filter((span) => span.startsWith('npm run '))
    .map((span) => {
      const [, , name = '', ...rest] = span.split(' ')
      return { name, flags: rest.filter((word) => /^--\w/.test(word)) }
    })
}

describe('every command of the evidence', () => {
  const commands = commandsOf(read(EVIDENCE))

  it.each(commands)('$name exists, and takes $flags', ({ name, flags }) => {
    expect(scripts).toHaveProperty([name])
    const [, file = ''] = /(?:tsx|vitest run) (\S+)/.exec(scripts[name] ?? '') ?? []
    for (const flag of flags) expect(read(file)).toContain(flag.slice(2))
  })

  it('a command that is not there would be caught', () => {
    const [gone] = commandsOf('see `npm run gone -- --short`')
    expect(gone).toEqual({ name: 'gone', flags: ['--short'] })
    expect(scripts).not.toHaveProperty(['gone'])
  })
})

describe('every suite', () => {
  it.each(SUITES)('%s has a row that says what it is, and figures', (suite) => {
    const rows = table(EVIDENCE, '## What is run').map(([command]) => spans(command)[0])
    expect(rows).toContain(`npm run ${suite}`)
    const own = figures.filter(({ command }) => command.split(' ')[2] === suite)
    expect(own.length).toBeGreaterThan(0)
  })
})

describe('every figure', () => {
  it.each(figures)('of $command is a last line with nothing violated', ({ line }) => {
    expect(line).toMatch(/^[a-z:-]+:( [a-zA-Z-]+=\S+)+$/)
    // What the generator's mutants survive is explained, or they are counted as unexplained.
    const wrong = line.startsWith('mutation:')
      ? /(unexplained|untrue)=[1-9]/
      : /(violations|survived|wrong|failed)=[1-9]/
    expect(line).not.toMatch(wrong)
  })

  it('says on which day, and of which commit', () => {
    const blocks = [...read(EVIDENCE).matchAll(/^```text$/gm)]
    expect(figures).toHaveLength(blocks.length)
  })
})
