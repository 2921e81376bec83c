/** The repository as the house rules see it: its files, their imports, their syntax. */

import { readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

/** A file, its path relative to the root with forward slashes. */
export interface Source {
  readonly path: string
  readonly text: string
}

export const root = fileURLToPath(new URL('../../', import.meta.url))

/** Reads one file of the repository. */
export function read(path: string): string {
  return readFileSync(`${root}${path}`, 'utf8')
}

/**
 * Every file that is not ignored. Walked, not asked of git, so that the rules hold in a copy
 * without a history too; only whole folders are ignored, as `.gitignore` has them.
 */
export function files(under = ''): Source[] {
  const ignored = new Set(['.git', ...ignoredFolders()])
  const found: Source[] = []
  const walk = (folder: string): void => {
    for (const entry of readdirSync(`${root}${folder}`, { withFileTypes: true })) {
      const path = `${folder}${entry.name}`
      if (entry.isDirectory() && !ignored.has(entry.name)) walk(`${path}/`)
      if (entry.isFile() && !entry.name.endsWith('.tgz')) found.push({ path, text: read(path) })
    }
  }
  walk(under)
  return found
}

/** The TypeScript files under a folder. */
export function sources(under = ''): Source[] {
  return files(under).filter((file) => file.path.endsWith('.ts'))
}

/**
 * What a file imports, in any spelling. What is in the repository comes back as a path from its
 * root (`src/token.ts`), everything else as it is written.
 */
export function importsOf(source: Source): string[] {
  const { importedFiles } = ts.preProcessFile(source.text, true, true)
  return importedFiles.map(({ fileName }) =>
    fileName.startsWith('.') ? posix.join(posix.dirname(source.path), fileName) : fileName,
  )
}

/** Every node of a file, in the order of the text. */
export function nodesOf(source: Source): { tree: ts.SourceFile; nodes: ts.Node[] } {
  const tree = ts.createSourceFile(source.path, source.text, ts.ScriptTarget.ESNext, true)
  const nodes: ts.Node[] = []
  const visit = (node: ts.Node): void => {
    nodes.push(node)
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return { tree, nodes }
}

/** Where a node stands: `src/token.ts:12`. */
export function place(source: Source, tree: ts.SourceFile, node: ts.Node): string {
  return `${source.path}:${tree.getLineAndCharacterOfPosition(node.getStart(tree)).line + 1}`
}

export interface Manifest {
  readonly version: string
  readonly files: readonly string[]
  readonly scripts: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, string | { types: string; default: string }>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

export function manifest(): Manifest {
  return JSON.parse(read('package.json')) as Manifest
}

/** The public entry points: the export's name and the file of the sources that it comes from. */
export function entryPoints(): { name: string; path: string }[] {
  return Object.entries(manifest().exports).flatMap(([key, target]) =>
    typeof target === 'string'
      ? []
      : [
          {
            name: posix.join('writefence', key),
            path: target.default.replace(/^\.\/dist\//, 'src/').replace(/\.js$/, '.ts'),
          },
        ],
  )
}

function ignoredFolders(): string[] {
  return read('.gitignore')
    .split('\n')
    .filter((line) => line.endsWith('/'))
    .map((line) => line.slice(0, -1))
}
