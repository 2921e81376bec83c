/** Compiles the children once: they start often, and plain JavaScript starts fastest. */

import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Returns the folder that has the compiled files of this one. */
export function compileChildren(outDir: string): string {
  const files = ['destination.ts', 'lease-service.ts', 'worker.ts']
  const program = ts.createProgram(
    files.map((file) => `${root}test/kill/${file}`),
    {
      target: ts.ScriptTarget.ES2023,
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      rootDir: root,
      outDir,
      rewriteRelativeImportExtensions: true,
      allowImportingTsExtensions: false,
      // They are checked with all the others.
      noCheck: true,
      skipLibCheck: true,
    },
  )
  program.emit()
  return `${outDir}/test/kill`
}
