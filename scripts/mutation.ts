/**
 * Mutation by a generator: `npm run mutation -- [part…] [--report]`
 *
 * Has Stryker change the sources of each part (guard, storage/sqlite, lease, http) in every way
 * that it knows, and puts each change to the part's tests. What survives has to be explained in
 * docs/mutation-survivors.md, and what is explained there has to survive; exit 0 only then.
 * `--report` judges the reports of the last run again.
 */

import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { generatedParts } from '../test/mutants/generated-parts.ts'
import { type Report, survivorsOf, tally } from '../test/mutants/mutation-report.ts'
import { explainedIn, keyOf } from '../test/mutants/survivors.ts'

const root = fileURLToPath(new URL('../', import.meta.url))
const RAM_DISK = '/dev/shm'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { report: { type: 'boolean', default: false } },
})
const parts = positionals.length > 0 ? positionals : [...generatedParts.keys()]
const began = performance.now()
const sum = { mutants: 0, killed: 0, timeout: 0, survived: 0, uncovered: 0, static: 0 }
let unexplained = 0
let untrue = 0

const explained = explainedIn(readFileSync(`${root}docs/mutation-survivors.md`, 'utf8'))
for (const part of parts) {
  const { mutate } = generatedParts.get(part) ?? fail(`there is no part ${part}`)
  const report = values.report ? read(part) : run(part, mutate)
  const counts = tally(report)
  for (const [name, count] of Object.entries(counts)) sum[name as keyof typeof sum] += count
  const found = survivorsOf(report)
  const keys = new Set(found.map(keyOf))
  for (const survivor of found.filter((each) => !explained.has(keyOf(each)))) {
    unexplained += 1
    const { file, line, original, replacement } = survivor
    console.log(`SURVIVED ${file}:${line}\n  - ${original}\n  + ${replacement}`)
  }
  for (const [key, { file }] of explained) {
    if (!(file in report.files) || keys.has(key)) continue
    untrue += 1
    console.log(`KILLED, though it is explained: ${key}`)
  }
}

const caught = sum.killed + sum.timeout
const judged = caught + sum.survived + sum.uncovered
const figures = {
  ...sum,
  score: `${((100 * caught) / judged).toFixed(1)}%`,
  unexplained,
  untrue,
  seconds: Math.round((performance.now() - began) / 1000),
}
const pairs = Object.entries(figures).map((pair) => pair.join('='))
console.log(`mutation: ${pairs.join(' ')}`)
process.exitCode = judged > 0 && unexplained === 0 && untrue === 0 ? 0 : 1

function run(part: string, mutate: string): Report {
  // The tests sync their files to the disk, which is all that they wait for.
  const { TMPDIR = existsSync(RAM_DISK) ? RAM_DISK : '/tmp' } = process.env
  const env = { ...process.env, TMPDIR, MUTATION_PART: part }
  const args = ['--no-install', 'stryker', 'run', '--mutate', mutate]
  const { status } = spawnSync('npx', args, { cwd: root, env, stdio: 'inherit' })
  if (status !== 0) fail(`stryker ended with ${status}`)
  mkdirSync(`${root}reports/mutation`, { recursive: true })
  copyFileSync(`${root}reports/mutation.json`, reportOf(part))
  return read(part)
}

function read(part: string): Report {
  return JSON.parse(readFileSync(reportOf(part), 'utf8')) as Report
}

function reportOf(part: string): string {
  return `${root}reports/mutation/${part.replace('/', '-')}.json`
}

function fail(text: string): never {
  throw new Error(text)
}
