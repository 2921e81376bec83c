import { describe, expect, it } from 'vitest'
import { type Source, sources } from './project.ts'
import {
  defaultExport,
  leftOut,
  longFunction,
  oddName,
  readsClock,
  type ShapeRule,
  tooLong,
  tooWide,
  unknownScenario,
  untyped,
  usesConsole,
} from './shape-rules.ts'

const all = sources()
const under = (...folders: string[]): Source[] =>
  all.filter((source) => folders.some((folder) => source.path.startsWith(folder)))

const lines = (count: number): string => 'x()\n'.repeat(count)

interface Law {
  readonly title: string
  readonly rule: ShapeRule
  readonly over: readonly Source[]
  /** Text that breaks the rule, and text that only just does not. */
  readonly broken: readonly string[]
  readonly kept: readonly string[]
}

const laws: readonly Law[] = [
  {
    title: 'a file has 300 lines at the most',
    rule: tooLong,
    over: all,
    broken: [lines(301)],
    kept: [lines(300)],
  },
  {
    title: 'a line has 100 columns at the most',
    rule: tooWide,
    over: all,
    broken: ['x'.repeat(101), `ok\n${'é'.repeat(101)}`],
    kept: ['x'.repeat(100), '🔒'.repeat(100)],
  },
  {
    title: 'a function has fewer than 70 lines',
    rule: longFunction,
    over: all,
    broken: [
      `function f() {\n${lines(68)}}`,
      `class C {\n  m() {\n${lines(68)}}\n}`,
      `it('is long', () => {\n${lines(68)}})`,
    ],
    kept: [`const f = () => {\n${lines(67)}}`, `describe('all', () => {\n${lines(90)}})`],
  },
  {
    title: 'every export has a name',
    rule: defaultExport,
    over: all.filter((source) => !/^vitest\.(\w+\.)?config\.ts$/.test(source.path)),
    broken: [
      'export default 1',
      'export default class C {}',
      'export { x as default }',
      'export default function f() {}',
    ],
    kept: [
      `export { default as x } from './x.ts'`,
      'export const x = 1',
      'switch (x) { default: }',
    ],
  },
  {
    title: 'the sources write nothing to the console',
    rule: usesConsole,
    over: under('src/'),
    broken: ['console.log(1)', `globalThis['console'].warn(1)`],
    kept: ['/** console.log(outcome) */', 'consoles()'],
  },
  {
    title: 'the guard, and all that it imports, reads no clock',
    rule: readsClock,
    over: under('src/guard/', 'src/token.ts', 'src/errors.ts', 'src/events.ts', 'src/options.ts'),
    broken: [
      'Date.now()',
      'new Date()',
      'process.hrtime()',
      'process.uptime()',
      'performance.now()',
    ],
    kept: ['// no Date here', 'setTimeout(refuse, deadlineMs)', 'const updated = 1'],
  },
  {
    title: 'nothing is any',
    rule: untyped,
    over: all.filter((source) => !source.path.startsWith('test/house/')),
    broken: ['let x: any', 'x as any as Y', `// @ts-${'ignore'}\nx()`],
    kept: ['let any = 1', '// @ts-expect-error\nx()'],
  },
  {
    title: 'no test is left out, and none leaves out the others',
    rule: leftOut,
    over: under('test/'),
    broken: [
      `it.${'skip'}('x', f)`,
      `describe.${'only'}('x', f)`,
      `it.${'todo'}('x')`,
      `it.skipIf(slow)('x', f)`,
      `it.for([1]).only('x', f)`,
      `it('x', { skip: true }, f)`,
    ],
    kept: [`lines.skip(1)`, `it.each([1])('x', f)`, `it('x', () => g({ only: 1 }))`],
  },
  {
    title: 'a scenario that a test names is one of R01 to R128',
    rule: unknownScenario,
    over: under('test/').filter((source) => !source.path.startsWith('test/house/')),
    broken: [`it('R0: x', f)`, `it('R129: x', f)`, `it('R5: x', f)`, `it(\`R00 \${x}\`, f)`],
    kept: [`it('R01, R99 and R128: x', f)`, `it('RFC 9651: x', f)`],
  },
]

describe.each(laws)('$title', ({ rule, over, broken, kept }) => {
  it('holds', () => {
    expect(over.length).toBeGreaterThan(0)
    expect(over.flatMap(rule)).toEqual([])
  })

  it.each(broken)('would catch %j', (text) => {
    expect(rule({ path: 'src/fixture.ts', text })).toHaveLength(1)
  })

  it.each(kept)('lets pass %j', (text) => {
    expect(rule({ path: 'src/fixture.ts', text })).toEqual([])
  })
})

describe('file names are kebab-case', () => {
  it('holds', () => {
    expect(all.flatMap(oddName)).toEqual([])
  })

  it.each(['src/writeGuard.ts', 'src/Guard/a.ts', 'src/a_b.ts'])('would catch %s', (path) => {
    expect(oddName({ path, text: '' })).toEqual([path])
  })
})
