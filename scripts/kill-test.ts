/**
 * `npm run kill-test -- [--short] [--kills N] [--seed N]`: kills real processes under load and
 * judges what is left. Exit 0 only if nothing was violated.
 */

import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { runKillTest } from '../test/kill/run.ts'

const { values } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    kills: { type: 'string' },
    seed: { type: 'string' },
  },
})
const kills = Number(values.kills ?? (values.short ? 200 : 1_000))
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31))
const directory = fileURLToPath(new URL(`../reports/kill-test`, import.meta.url))
const began = performance.now()
const report = await runKillTest({ kills, seed, directory, progress: console.log })

for (const { rule, message } of report.violations.slice(0, 20)) console.log(`${rule}: ${message}`)
// A run in which nothing was done shows nothing.
const idle = report.effects < kills || report.acknowledged < kills
if (idle) console.log('too little was written between the kills to show anything')
const { violations, ...figures } = report
const seconds = Math.round((performance.now() - began) / 1000)
const all = { ...figures, violations: violations.length, seconds, seed }
console.log(
  `kill-test: ${Object.entries(all)
    .map((pair) => pair.join('='))
    .join(' ')}`,
)
process.exit(violations.length === 0 && !idle ? 0 : 1)
