import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { entryPoints, files, root, sources } from '../house/project.ts'
import { blocks, outsideCode, section, spans } from './markdown.ts'

const prose = files().filter((file) => file.path.endsWith('.md'))
// What issuers call their numbers is in the examples only.
const code = [...sources('src/'), ...sources('examples/issuers/')]
  .map((source) => source.text)
  .join('\n')

/** The code blocks of the README that run, each as a file of the project. */
const printed = ['## The destination', '## The worker'].map((heading, index) => ({
  name: `${root}test/docs/printed-${index}.ts`,
  text: blocks(section('README.md', heading), 'ts')[0] ?? '',
}))
const program = compiled()
const exported = new Map(entryPoints().map(({ name, path }) => [name, exportsOf(path)]))

/** One program over the entry points and the printed blocks, which are files in memory only. */
function compiled(): ts.Program {
  const { config } = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile)
  const parsed = ts.parseJsonConfigFileContent(config, ts.sys, root)
  // `const server` and `const outcome` are there for the reader to go on with.
  const options = { ...parsed.options, noUnusedLocals: false }
  const host = ts.createCompilerHost(options)
  const onDisk = { read: host.getSourceFile, exists: host.fileExists }
  const find = (path: string) => printed.find(({ name }) => name === path)
  host.fileExists = (path) => find(path) !== undefined || onDisk.exists(path)
  host.getSourceFile = (path, ...rest) => {
    const block = find(path)
    if (block === undefined) return onDisk.read(path, ...rest)
    return ts.createSourceFile(path, block.text, ts.ScriptTarget.ESNext, true)
  }
  const paths = [
    ...entryPoints().map(({ path }) => root + path),
    ...printed.map(({ name }) => name),
  ]
  return ts.createProgram(paths, options, host)
}

function exportsOf(path: string): Set<string> {
  const checker = program.getTypeChecker()
  const file = program.getSourceFile(root + path)
  const module = file && checker.getSymbolAtLocation(file)
  return new Set(module && checker.getExportsOfModule(module).map((symbol) => symbol.name))
}

/** The names that a text imports from this package and that are not exported there. */
function unknownImports(text: string): string[] {
  const imports = /import (?:type )?\{([^}]*)\} from '(writefence[^']*)'/g
  return [...text.matchAll(imports)].flatMap(([, names = '', from = '']) =>
    names
      .split(',')
      .map((name) => name.replace(/^\s*type /, '').trim())
      .filter((name) => name !== '' && !exported.get(from)?.has(name))
      .map((name) => `${name} from ${from}`),
  )
}

/** Names of classes and types that are neither the package's nor everybody's. */
function unknownTypes(text: string): string[] {
  const all = [...exported.values()]
  return spans(outsideCode(text))
    .filter((name) => /^[A-Z][a-z]+[A-Z]\w+$/.test(name))
    .filter((name) => !(name in globalThis) && !all.some((names) => names.has(name)))
}

// Of the packages that engines are used with.
const FOREIGN = ['executeQuery', 'connectionTimeoutMillis']

/** Names of functions, options and members that no source has. */
function unknownMembers(text: string): string[] {
  return spans(outsideCode(text))
    .map((span) => /^(?:[a-z]+\.)?([a-z]+[A-Z]\w*)/.exec(span)?.[1])
    .filter((name) => name !== undefined)
    .filter((name) => !FOREIGN.includes(name))
    .filter((name) => !(name in globalThis) && !new RegExp(`\\b${name}\\b`).test(code))
}

describe.each(prose)('$path', ({ text }) => {
  it('names only what there is', () => {
    expect([...unknownImports(text), ...unknownTypes(text), ...unknownMembers(text)]).toEqual([])
  })
})

it.each([
  [unknownImports, "import { openSqlite, type Gone } from 'writefence/sqlite'"],
  [unknownImports, "import { runWithLease } from 'writefence/gone'"],
  [unknownTypes, 'throws `GoneError`'],
  [unknownMembers, 'see `runWithoutLease(store)` and `lease.fetch`'],
  [unknownMembers, 'see `guard.dropEverything`'],
])('%o would catch %j', (rule, text) => {
  expect(rule(text)).toHaveLength(1)
})

describe('the code of the README', () => {
  it.each(printed)('has no error of types: %#', ({ name, text }) => {
    expect(text).toContain('writefence')
    const file = program.getSourceFile(name)
    const errors = file && ts.getPreEmitDiagnostics(program, file)
    expect(errors?.map(({ messageText }) => messageText)).toEqual([])
  })
})

/** The anchor that GitHub and npm give a heading. */
function anchorsOf(text: string): string[] {
  return [...outsideCode(text).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

describe('a link into a page', () => {
  it('leads to a heading that is there', () => {
    const links = prose.flatMap(({ path, text }) =>
      [...outsideCode(text).matchAll(/\]\((?!\w+:)([^)#\s]*)#([^)\s]+)\)/g)].map(
        ([, to = '', anchor = '']) => ({ path, to: resolve(path, to), anchor }),
      ),
    )
    const broken = links.filter(({ to, anchor }) => {
      const page = prose.find(({ path }) => path === to)
      return page === undefined || !anchorsOf(page.text).includes(anchor)
    })
    expect(links.length).toBeGreaterThan(0)
    expect(broken).toEqual([])
  })
})

function resolve(from: string, to: string): string {
  return to === '' ? from : new URL(to, `file:///${from}`).pathname.slice(1)
}
