/** Bundles the children once: they start often, and few files of plain JavaScript start fastest. */

import { fileURLToPath } from 'node:url'
import { build } from 'vite'

const root = fileURLToPath(new URL('../..', import.meta.url))
const CHILDREN = ['destination', 'plain-destination', 'lease-service', 'worker'] as const

export type Child = (typeof CHILDREN)[number]

/** `outDir` is below the repository, where the drivers are found. Returns the file of a child. */
export async function compileChildren(outDir: string): Promise<(child: Child) => string> {
  const input = Object.fromEntries(CHILDREN.map((child) => [child, `${root}test/kill/${child}.ts`]))
  await build({
    configFile: false,
    logLevel: 'error',
    root,
    ssr: { noExternal: true, external: ['better-sqlite3', 'ioredis', 'mysql2', 'pg'] },
    build: { ssr: true, outDir, emptyOutDir: true, rollupOptions: { input } },
  })
  return (child) => `${outDir}/${child}.js`
}
