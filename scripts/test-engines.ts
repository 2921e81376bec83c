/**
 * `npm run test:engines`: the laws of both ports on every engine. The last line counts those that
 * hold on each; with CI=true or REQUIRE_ENGINES=1 an engine that does not answer is a failure.
 */

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ENGINES = {
  sqlite: [
    'test/conformance/fence-store.sqlite.test.ts',
    'test/conformance/lease-store.sqlite.test.ts',
  ],
  postgres: ['test/engines/postgres.test.ts'],
  mariadb: ['test/engines/mysql.test.ts'],
  redis: ['test/engines/redis.test.ts'],
  http: ['test/conformance/lease-store.http.test.ts'],
} as const
/** Not a law: whether there is a server to ask. */
const PRESENCE = 'the server answers, where it is required'

interface Report {
  readonly success: boolean
  readonly testResults: readonly {
    readonly name: string
    readonly assertionResults: readonly { readonly title: string; readonly status: string }[]
  }[]
}

const folder = mkdtempSync(join(tmpdir(), 'writefence-engines-'))
const output = join(folder, 'report.json')
const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${output}`]
const files = Object.values(ENGINES).flat()
const run = spawnSync('npx', ['--no-install', 'vitest', 'run', ...files, ...reporters], {
  stdio: 'inherit',
})
const report = JSON.parse(readFileSync(output, 'utf8')) as Report
rmSync(folder, { recursive: true })

const laws = Object.entries(ENGINES).map(([engine, own]) => {
  const results = report.testResults.filter(({ name }) => own.some((file) => name.endsWith(file)))
  const held = results
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ title, status }) => title !== PRESENCE && status === 'passed')
  return { engine, held: held.length }
})
const required = process.env.CI === 'true' || process.env.REQUIRE_ENGINES === '1'
const missing = laws.filter(({ held }) => held === 0).map(({ engine }) => engine)
if (missing.length > 0) console.log(`did not answer: ${missing.join(', ')}`)
console.log(`engines: ${laws.map(({ engine, held }) => `${engine}=${held}`).join(' ')}`)
const failed = run.status !== 0 || !report.success
process.exit(failed || (required && missing.length > 0) ? 1 : 0)
