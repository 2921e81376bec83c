/**
 * Loads the package as a user gets it: packed, unpacked outside the repository, every entry point
 * by `import` and by `require`, first with nothing but its own dependencies beside it.
 */

import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'

interface Manifest {
  readonly exports: Readonly<Record<string, unknown>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
}

const root = fileURLToPath(new URL('..', import.meta.url))
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest
const entries = Object.keys(manifest.exports)
  .filter((key) => key !== './package.json')
  .map((key) => posix.join('writefence', key))
const peers = Object.keys(manifest.peerDependencies)

/** What an entry point needs beside it; one that is not listed loads without any peer. */
const NEEDS: Readonly<Record<string, readonly string[]>> = {
  'writefence/sqlite': ['better-sqlite3'],
}

/** Packs the repository and unpacks it as `node_modules/writefence` of an empty project. */
function install(project: string): void {
  const [packed] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', project], {
      cwd: root,
      encoding: 'utf8',
    }),
  ) as [{ filename: string; files: { path: string }[] }]
  const allowed = [
    /^dist\/.+\.(js|d\.ts)$/,
    /^docs\/.+\.(md|svg)$/,
    /^examples\/.+\.ts$/,
    /^sql\/[a-z]+\.sql$/,
    /^((CHANGELOG|CONTRIBUTING|README|SECURITY)\.md|LICENSE|package\.json)$/,
  ]
  const strange = packed.files
    .map((file) => file.path)
    .filter((path) => !allowed.some((one) => one.test(path)))
  if (strange.length > 0) throw new Error(`the tarball has ${strange.join(', ')}`)

  const target = join(project, 'node_modules/writefence')
  mkdirSync(target, { recursive: true })
  execFileSync('tar', ['-xzf', packed.filename, '-C', target, '--strip-components=1'], {
    cwd: project,
  })
}

function link(project: string, names: readonly string[]): void {
  for (const name of names) {
    const target = join(project, 'node_modules', name)
    mkdirSync(dirname(target), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), target, 'dir')
  }
}

/** Runs a module of the project's in a Node of its own, and fails with what that one says. */
function run(project: string, type: 'module' | 'commonjs', code: string): void {
  execFileSync(process.execPath, [`--input-type=${type}`, '--eval', code], {
    cwd: project,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

/** Both spellings give the same names, and at least one; no peer that is not needed is loaded. */
function checkEntry(project: string, entry: string): void {
  const idle = peers.filter((peer) => !NEEDS[entry]?.includes(peer))
  const check = `
    const names = Object.keys(loaded).filter((name) => name !== 'module.exports')
    if (names.length === 0) throw new Error('${entry} exports nothing')
    const { sep } = process.getBuiltinModule('node:path')
    const cache = Object.keys(process.getBuiltinModule('node:module')._cache)
    for (const peer of ${JSON.stringify(idle)}) {
      if (cache.some((path) => path.includes('node_modules' + sep + peer + sep)))
        throw new Error('${entry} loads ' + peer)
    }`
  run(project, 'module', `const loaded = await import('${entry}'); ${check}`)
  run(project, 'commonjs', `const loaded = require('${entry}'); ${check}`)
}

const project = mkdtempSync(join(tmpdir(), 'writefence-smoke-'))
try {
  install(project)
  link(project, Object.keys(manifest.dependencies))
  for (const entry of entries.filter((name) => NEEDS[name] === undefined)) {
    checkEntry(project, entry)
    console.log(`${entry} loads with no peer installed`)
  }
  link(project, peers)
  for (const entry of entries) {
    checkEntry(project, entry)
    console.log(`${entry} loads by import and by require`)
  }
} finally {
  rmSync(project, { recursive: true, force: true })
}
