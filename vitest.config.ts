import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url))

/** The public entry points, resolved to the sources: tests read as a user's code would. */
export default defineConfig({
  resolve: {
    alias: [
      { find: /^writefence$/, replacement: source('index.ts') },
      { find: /^writefence\/sqlite$/, replacement: source('storage/sqlite/index.ts') },
      { find: /^writefence\/mysql$/, replacement: source('storage/mysql/index.ts') },
      { find: /^writefence\/redis$/, replacement: source('storage/redis/index.ts') },
      { find: /^writefence\/postgres$/, replacement: source('storage/postgres/index.ts') },
      { find: /^writefence\/express$/, replacement: source('express/index.ts') },
      { find: /^writefence\/http$/, replacement: source('storage/http/index.ts') },
      { find: /^writefence\/conformance$/, replacement: source('conformance/index.ts') },
    ],
  },
  test: { include: ['test/**/*.test.ts', 'test/**/*.test-d.ts'], testTimeout: 20_000 },
})
