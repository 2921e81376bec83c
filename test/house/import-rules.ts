/**
 * Who may import whom. The order is what keeps the guarantee readable: a guard that cannot see
 * time or leases cannot be talked into accepting a stale write by either.
 */

import ts from 'typescript'
import { importsOf, type Source } from './project.ts'

export interface ImportRule {
  readonly title: string
  /** The importing files that the rule is about. */
  readonly of: RegExp
  /** What they may import; everything is allowed where it is absent. */
  readonly only?: RegExp
  /** What they must not import. */
  readonly never?: RegExp
  /** An import that breaks the rule: a rule that lets it pass checks nothing. */
  readonly caught: { readonly path: string; readonly imports: string }
}

// The files at the top: what a token is, which errors there are, what is told to the outside.
const TOP = 'src/(token|errors|events|options)\\.ts'
const PORTS = 'src/(guard/fence-store|lease/lease-(store|arguments|rules))\\.ts'
const NODE = 'node:.*'

/** Third-party packages, and the one place where each may be imported. */
const HOMES: readonly [name: string, home: string][] = [
  ['structured-headers', 'src/wire/'],
  ['express', 'src/express/'],
  ['better-sqlite3', 'src/storage/sqlite/'],
  ['pg', 'src/storage/postgres/'],
  ['postgres', 'src/storage/postgres/'],
  ['mysql2', 'src/storage/mysql/'],
  ['ioredis', 'src/storage/redis/'],
  ['redis', 'src/storage/redis/'],
]

export const importRules: readonly ImportRule[] = [
  {
    title: 'token imports nothing',
    of: /^src\/token\.ts$/,
    never: /./,
    caught: { path: 'src/token.ts', imports: './errors.ts' },
  },
  {
    title: 'errors, events and options import only each other and diagnostics_channel',
    of: /^src\/(errors|events|options)\.ts$/,
    only: exactly(TOP, 'node:diagnostics_channel'),
    caught: { path: 'src/errors.ts', imports: './wire/problem.ts' },
  },
  {
    title: 'wire/ spells what the top files and the ports define, and knows nothing else',
    of: /^src\/wire\//,
    only: exactly(
      'src/wire/.*',
      TOP,
      PORTS,
      'src/guard/fence-state\\.ts',
      NODE,
      'structured-headers',
    ),
    caught: { path: 'src/wire/headers.ts', imports: '../guard/write-guard.ts' },
  },
  {
    title: 'lease/ imports wire/ and the top files only',
    of: /^src\/lease\//,
    only: exactly('src/lease/.*', 'src/wire/.*', TOP, NODE),
    caught: { path: 'src/lease/held-lease.ts', imports: '../guard/verdict.ts' },
  },
  {
    title: 'guard/ imports the top files only: neither lease/ nor wire/',
    of: /^src\/guard\//,
    only: exactly('src/guard/.*', TOP, NODE),
    caught: { path: 'src/guard/write-guard.ts', imports: '../lease/deadline.ts' },
  },
  {
    title: 'http/ imports no engine and no Express',
    of: /^src\/http\//,
    only: exactly('src/(http|guard|lease|wire)/.*', TOP, NODE),
    caught: { path: 'src/http/gate.ts', imports: '../storage/sqlite/index.ts' },
  },
  {
    title: 'an engine imports the ports, and what all engines share, only',
    of: /^src\/storage\/(?!http\/)[^/]+\//,
    only: exactly('src/storage/.*', PORTS, TOP, '(?!src/).*'),
    caught: { path: 'src/storage/sqlite/sqlite-fence-store.ts', imports: '../../guard/verdict.ts' },
  },
  {
    title: 'the engine over HTTP imports its port and wire/ only',
    of: /^src\/storage\/http\//,
    only: exactly('src/storage/(http/.*|[^/]+\\.ts)', PORTS, TOP, 'src/wire/.*', NODE),
    caught: { path: 'src/storage/http/index.ts', imports: '../../lease/heartbeat.ts' },
  },
  ...['sqlite', 'postgres', 'mysql', 'redis', 'http'].map((engine) => ({
    title: `no other engine imports storage/${engine}/`,
    of: new RegExp(`^src/storage/(?!${engine}/)`),
    never: new RegExp(`^src/storage/${engine}/`),
    caught: { path: 'src/storage/other/index.ts', imports: `../${engine}/index.ts` },
  })),
  {
    title: 'nothing imports express/ or cli/',
    of: /^src\/(?!express\/|cli\/)/,
    never: /^src\/(express|cli)\//,
    caught: { path: 'src/http/gate.ts', imports: '../express/index.ts' },
  },
  {
    title: 'conformance/ imports no engine, no Express and no test runner',
    of: /^src\/conformance\//,
    never: /^src\/(storage|express|cli)\/|^vitest/,
    caught: { path: 'src/conformance/index.ts', imports: 'vitest' },
  },
  {
    title: 'index.ts imports no engine, no Express and no conformance suite',
    of: /^src\/index\.ts$/,
    never: /^src\/(storage|express|cli|conformance)\//,
    caught: { path: 'src/index.ts', imports: './storage/sqlite/index.ts' },
  },
  {
    title: 'the sources import no package but the known ones',
    of: /^src\//,
    only: exactly('src/.*', NODE, ...HOMES.map(([name]) => name)),
    caught: { path: 'src/wire/fingerprint.ts', imports: 'left-pad' },
  },
  ...HOMES.map(([name, home]) => ({
    title: `only ${home} imports ${name}`,
    of: new RegExp(`^src/(?!${home.slice('src/'.length)})`),
    never: exactly(name, `${name}/.*`),
    caught: { path: 'src/guard/write-guard.ts', imports: name },
  })),
  {
    title: 'a relative import names its file, .ts included',
    of: /./,
    never: /^(src|test|bench|scripts|examples)\/.*(?<!\.ts)$/,
    caught: { path: 'src/index.ts', imports: './token.js' },
  },
]

/** The imports that break a rule, as `src/a.ts imports src/b.ts`. */
export function violations(rule: ImportRule, sources: readonly Source[]): string[] {
  return sources
    .filter((source) => rule.of.test(source.path))
    .flatMap((source) =>
      importsOf(source)
        .filter((target) => rule.only?.test(target) === false || rule.never?.test(target))
        .map((target) => `${source.path} imports ${target}`),
    )
}

/**
 * Circles of imports that are left once types are erased, each as the list of its files: which of
 * them runs first would hang on who was imported first. Types may refer to each other.
 */
export function circles(sources: readonly Source[]): string[] {
  const graph = new Map(sources.map((source) => [source.path, importsOf(erased(source))]))
  const found: string[] = []
  const done = new Set<string>()
  const visit = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) found.push([...trail.slice(trail.indexOf(path)), path].join(' -> '))
    if (done.has(path)) return
    done.add(path)
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path])
  }
  for (const path of graph.keys()) visit(path, [])
  return found
}

/** Everything that a file imports, directly or not. */
export function reachedFrom(path: string, sources: readonly Source[]): Set<string> {
  const graph = new Map(sources.map((source) => [source.path, importsOf(source)]))
  const reached = new Set<string>()
  const visit = (from: string): void => {
    for (const target of graph.get(from) ?? []) {
      if (reached.has(target)) continue
      reached.add(target)
      visit(target)
    }
  }
  visit(path)
  return reached
}

function erased(source: Source): Source {
  const compilerOptions = { verbatimModuleSyntax: true, module: ts.ModuleKind.ESNext }
  return { ...source, text: ts.transpileModule(source.text, { compilerOptions }).outputText }
}

function exactly(...patterns: string[]): RegExp {
  return new RegExp(`^(${patterns.join('|')})$`)
}
