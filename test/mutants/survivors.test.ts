import { describe, expect, it } from 'vitest'
import { read } from '../house/project.ts'
import { type Report, survivorsOf, tally } from './mutation-report.ts'
import { explainedIn, keyOf, short } from './survivors.ts'

const explained = [...explainedIn(read('docs/mutation-survivors.md')).values()]

describe('the mutants that survive', () => {
  it('are explained, each with a reason', () => {
    expect(explained.length).toBeGreaterThan(0)
    expect(explained.filter(({ reason }) => reason.split(' ').length < 4)).toEqual([])
  })

  it('are changes of what is still there', () => {
    const gone = explained.filter(
      ({ file, original }) => !read(file).replace(/\s+/g, ' ').includes(short(original)),
    )
    expect(gone).toEqual([])
  })

  it('are read from the blocks of their files', () => {
    const text = [
      '## src/a.ts\n\n```diff\n- a < b\n+ a <= b\n- {\n+ {}\n```\n\nEqual is\nrefused before.\n',
      '## src/b.ts\n\n```diff\n- "x"\n+ ""\n```\n\nText.\n',
    ].join('\n')
    expect([...explainedIn(text)]).toEqual([
      [
        'src/a.ts: a < b => a <= b',
        { file: 'src/a.ts', original: 'a < b', reason: 'Equal is\nrefused before.' },
      ],
      [
        'src/a.ts: { => {}',
        { file: 'src/a.ts', original: '{', reason: 'Equal is\nrefused before.' },
      ],
      ['src/b.ts: "x" => ""', { file: 'src/b.ts', original: '"x"', reason: 'Text.' }],
    ])
  })
})

describe('a report', () => {
  const at = (line: number, column: number) => ({ line, column })
  const mutant = (status: string) => ({
    mutatorName: 'EqualityOperator',
    replacement: 'a <= b',
    status,
    location: { start: at(2, 5), end: at(3, 4) },
  })
  const statuses = ['Killed', 'Timeout', 'Survived', 'NoCoverage', 'Ignored', 'RuntimeError']
  const source = 'first\nif (a <\n  b) {}\n'
  const report: Report = { files: { 'src/a.ts': { source, mutants: statuses.map(mutant) } } }

  it('is counted', () => {
    expect(tally(report)).toEqual({
      mutants: 6,
      killed: 2,
      timeout: 1,
      survived: 1,
      uncovered: 1,
      static: 1,
    })
  })

  it('gives what survived, reached or not, as it stands in the file', () => {
    const [first, second] = survivorsOf(report)
    expect(first).toEqual({
      file: 'src/a.ts',
      line: 2,
      original: 'a <\n  b',
      replacement: 'a <= b',
    })
    expect(second && keyOf(second)).toBe('src/a.ts: a < b => a <= b')
  })
})
