import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))
const folder = `${root}examples`
const numbered = existsSync(folder)
  ? readdirSync(folder).filter((name) => /^\d\d-[a-z0-9-]+\.ts$/.test(name))
  : []

const SERVERS = ['ETCD_URL', 'ZOOKEEPER', 'PGHOST', 'PGPORT', 'PGUSER', 'PGPASSWORD', 'PGDATABASE']
const PASSED_ON = ['PATH', 'CI', 'REQUIRE_ENGINES', ...SERVERS]

describe('the examples', () => {
  it('are numbered from 01 without a gap', () => {
    const expected = numbered.map((_, index) => String(index + 1).padStart(2, '0'))
    expect(numbered.length).toBeGreaterThan(0)
    expect(numbered.map((name) => name.slice(0, 2))).toEqual(expected)
  })

  it.each(numbered)('%s asserts what it shows', (name) => {
    expect(readFileSync(`${folder}/${name}`, 'utf8')).toMatch(
      /^import .* from 'node:assert\/strict'$/m,
    )
  })

  // Each asserts what it shows, so one that ends well has shown it. It runs as a user runs it: a
  // process of its own, from an empty environment but for what Node itself needs, where the servers
  // of other issuers are, and whether they must answer.
  it.each(numbered)('%s ends well', async (name) => {
    const run = promisify(execFile)(process.execPath, ['--import', 'tsx', `${folder}/${name}`], {
      cwd: root,
      env: Object.fromEntries(PASSED_ON.map((name) => [name, process.env[name]])),
      timeout: 15_000,
    })
    await expect(run).resolves.toMatchObject({ stderr: '' })
  })
})
