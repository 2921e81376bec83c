import { existsSync } from 'node:fs'
import { posix } from 'node:path'
import { describe, expect, it } from 'vitest'
import { entryPoints, files, manifest, read, root, sources } from './project.ts'

const { version, exports, scripts, dependencies, devDependencies, files: packed } = manifest()
const all = files()
const prose = all.filter((file) => file.path.endsWith('.md'))
const src = sources('src/').map((source) => source.path)

describe('the package', () => {
  it('exports the index of one folder per entry point, and its own package.json', () => {
    const expected = entryPoints().map(({ path }) => {
      const built = `./dist/${path.slice('src/'.length, -'.ts'.length)}`
      return { types: `${built}.d.ts`, default: `${built}.js` }
    })
    expect(Object.values(exports)).toEqual([...expected, './package.json'])
  })

  it('exports every index.ts, and nothing else has that name', () => {
    const indexes = src.filter((path) => posix.basename(path) === 'index.ts')
    expect(entryPoints().map((entry) => entry.path)).toEqual(expect.arrayContaining(indexes))
    expect(indexes).toHaveLength(entryPoints().length)
  })

  it.each(['tsconfig.json', 'vitest.config.ts'])('%s maps every entry point to it', (config) => {
    for (const { path } of entryPoints()) expect(read(config)).toContain(path.slice('src/'.length))
  })

  it('packs an allow-list', () => {
    const whole = ['dist', 'docs', 'examples', 'sql']
    expect(packed).toEqual([...whole, 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'])
  })

  it('pins its tools exactly, and installs nothing with it but structured-headers', () => {
    const exact = /^(npm:[a-z0-9]+@)?\d+\.\d+\.\d+$/
    const loose = Object.entries(devDependencies).filter(([, range]) => !exact.test(range))
    expect(loose).toEqual([])
    expect(Object.keys(dependencies)).toEqual(['structured-headers'])
  })

  it('has its version in the changelog', () => {
    expect(read('CHANGELOG.md')).toContain(`\n## [${version}]`)
  })
})

describe('the folders of src/', () => {
  const known = [
    /^src\/(index|token|errors|events|options)\.ts$/,
    /^src\/(wire|lease|guard|http|express|conformance|cli)\/[^/]+\.ts$/,
    /^src\/storage\/[^/]+\.ts$/,
    // Every engine has the same files, named after it, so that they can be read side by side.
    /^src\/storage\/(sqlite|postgres|mysql|redis|http)\/(index|(open-)?\1(-[^/]+)?)\.ts$/,
  ]
  const strange = (path: string): boolean => !known.some((one) => one.test(path))

  it('are the known ones, and the files of an engine bear its name', () => {
    expect(src.filter(strange)).toEqual([])
  })

  it.each([
    'src/utils.ts',
    'src/util/a.ts',
    'src/guard/inner/a.ts',
    'src/storage/oracle/index.ts',
    'src/storage/sqlite/fence-store.ts',
    'src/storage/sqlite/http-fence-store.ts',
  ])('%s would be caught', (path) => {
    expect(strange(path)).toBe(true)
  })
})

describe('the prose', () => {
  it('names only scripts that exist', () => {
    const named = prose.flatMap(({ path, text }) =>
      [...text.matchAll(/\bnpm (?:run ([\w:-]+)|(test|start)\b)/g)].map(([, run, short]) => ({
        path,
        script: run ?? short ?? '',
      })),
    )
    expect(named.length).toBeGreaterThan(0)
    expect(named.filter(({ script }) => !(script in scripts))).toEqual([])
  })

  const links = prose.flatMap(({ path, text }) =>
    [...text.matchAll(/\]\((?!\w+:)([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, link = '']) => ({
      path,
      target: posix.join(posix.dirname(path), link),
    })),
  )

  it('links only to files that exist', () => {
    expect(links.filter(({ target }) => !existsSync(`${root}${target}`))).toEqual([])
  })

  it('that is packed links only to what is packed', () => {
    const always = ['README.md', 'LICENSE', 'package.json']
    const isPacked = (path: string) => [...packed, ...always].includes(path.split('/')[0] ?? '')
    const dead = links.filter(({ path, target }) => isPacked(path) && !isPacked(target))
    expect(links.length).toBeGreaterThan(0)
    expect(dead).toEqual([])
  })
})

describe('no file says on which machine it was written', () => {
  // Spelled so that this file does not contain what it looks for.
  const home = /(?<![\w.*])\/(work|root|home|Users)\//
  const host = /registry\.(npmjs|yarnpkg|npmmirror)\.|^\s*(@[\w-]+:)?registry\s*=/m
  const tells = (text: string): boolean => home.test(text) || host.test(text)

  it('holds', () => {
    expect(all.filter(({ text }) => tells(text)).map(({ path }) => path)).toEqual([])
  })

  it.each([
    ['a', 'work', 'main'].join('/').slice(1),
    ['', 'home', 'me', 'db.sqlite'].join('/'),
    `https://${['registry', 'npmjs', 'org'].join('.')}/express`,
    ['registry', 'https://example.test'].join('='),
  ])('%s would be caught', (text) => {
    expect(tells(text)).toBe(true)
  })
})
