import { describe, expect, it } from 'vitest'
import { circles, importRules, reachedFrom, violations } from './import-rules.ts'
import { entryPoints, sources } from './project.ts'

const all = sources()
const src = all.filter((source) => source.path.startsWith('src/'))

describe.each(importRules)('$title', (rule) => {
  it('holds', () => {
    expect(violations(rule, all)).toEqual([])
  })

  it.each([
    ['import', (target: string) => `import { x } from '${target}'`],
    ['import type', (target: string) => `import type { X } from '${target}'`],
    ['export', (target: string) => `export * from '${target}'`],
    ['import()', (target: string) => `const x = await import('${target}')`],
    ['an import type', (target: string) => `export type X = import('${target}').X`],
  ])('would catch %s', (_, spelled) => {
    const { path, imports } = rule.caught
    expect(violations(rule, [{ path, text: spelled(imports) }])).toHaveLength(1)
  })
})

describe('circles of imports', () => {
  it('there are none', () => {
    expect(circles(src)).toEqual([])
  })

  it('would be caught', () => {
    const ring = [
      { path: 'src/a.ts', text: `import './b.ts'` },
      { path: 'src/b.ts', text: `import { c } from './c.ts'` },
      { path: 'src/c.ts', text: `export * from './b.ts'` },
    ]
    expect(circles(ring)).toEqual(['src/b.ts -> src/c.ts -> src/b.ts'])
  })

  it('may be made of types', () => {
    const ring = [
      { path: 'src/a.ts', text: `import { b } from './b.ts'` },
      { path: 'src/b.ts', text: `import type { A } from './a.ts'` },
    ]
    expect(circles(ring)).toEqual([])
  })
})

describe('what an entry point reaches', () => {
  const drivers = ['better-sqlite3', 'pg', 'postgres', 'mysql2', 'ioredis', 'redis', 'express']

  it.each([
    ['writefence', []],
    ['writefence/http', []],
    ['writefence/conformance', []],
    ['writefence/sqlite', ['better-sqlite3']],
    ['writefence/express', ['express']],
  ])('%s reaches no driver and no Express but %j', (name, allowed) => {
    const entry = entryPoints().find((point) => point.name === name)
    const reached = reachedFrom(entry?.path ?? name, src)
    expect(reached.size).toBeGreaterThan(0)
    expect(drivers.filter((driver) => reached.has(driver) && !allowed.includes(driver))).toEqual([])
  })
})
