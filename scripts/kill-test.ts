/**
 * `npm run kill-test -- [--engine sqlite|postgres|mariadb|redis] [--short] [--kills N] [--seed N]`:
 * kills real processes under load and judges what is left.
 *
 * `--broken` plants each known fault of the engine instead, one a run: each has to be found.
 * `--fault <name>` plants one of them, to look at. Exit 0 only if nothing was violated and enough
 * was written to show it; with `--broken`, only if each fault was found.
 */

import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { compileChildren } from '../test/kill/compile.ts'
import type { Engine } from '../test/kill/engines/bank.ts'
import { FAULTS, type Fault, faultsOf, type Planted } from '../test/kill/faults.ts'
import { temporaryFolder } from '../test/kill/leftovers.ts'
import { type KillReport, runKillTest } from '../test/kill/run.ts'

const ENGINES: readonly string[] = ['sqlite', 'postgres', 'mariadb', 'redis'] satisfies Engine[]
const { values } = parseArgs({
  options: {
    engine: { type: 'string', default: 'sqlite' },
    short: { type: 'boolean', default: false },
    broken: { type: 'boolean', default: false },
    fault: { type: 'string' },
    kills: { type: 'string' },
    seed: { type: 'string' },
  },
})
const kills = Number(values.kills ?? (values.short ? 200 : 1_000))
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31))
// With anything else nothing would be done, and nothing found.
const isPlan = Number.isInteger(kills) && kills > 0 && Number.isInteger(seed)
const faults: readonly string[] = faultsOf(values.engine as Engine)
const isKnown = values.fault === undefined || faults.includes(values.fault)
if (!isPlan || !isKnown || !ENGINES.includes(values.engine)) {
  console.error(`engines: ${ENGINES.join(', ')}; faults: ${faults.join(', ')}`)
  console.error('--kills and --seed are whole numbers, above 0 and not below')
  process.exit(2)
}
const engine = values.engine as Engine
// A fault that takes more than one life to show itself.
const FAULTY_KILLS = values.short ? 20 : 40
const FAULTY_RUNS = 3

// What was started ends with this process.
process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))

const reports = fileURLToPath(new URL('../reports/kill-test', import.meta.url))
// Below the repository, so that they find their packages.
const file = await compileChildren(temporaryFolder(reports))

async function run(kills: number, fault?: Fault): Promise<KillReport> {
  const directory = `${reports}/${fault === undefined ? engine : `${engine}-${fault}`}`
  // Several times what it takes on two cores that are shared.
  const limitMs = 60_000 + 3_000 * kills
  const plan = { engine, kills, seed, limitMs, file, directory, fault, progress: console.log }
  const report = await runKillTest(plan)
  for (const { rule, message } of report.violations.slice(0, 20)) console.log(`${rule}: ${message}`)
  return report
}

function figures(name: string, all: object): void {
  const pairs = Object.entries(all).map((pair) => pair.join('='))
  console.log(`${name}: ${pairs.join(' ')}`)
}

/** What a run lacks to show anything. */
function lacks(kills: number, report: KillReport): string[] {
  const { destinations, leaseServices, workers, servers, clockSteps, skewed } = report
  const harmed = [destinations, leaseServices, workers, ...(engine === 'sqlite' ? [] : [servers])]
  const lacking: [boolean, string][] = [
    [report.kills < kills, `only ${report.kills} of ${kills} kills in time`],
    [report.effects < 3 * kills, 'too little was written between the kills'],
    [report.idle > kills / 3, 'too many kills fell upon a process with nothing to do'],
    [kills >= 100 && harmed.includes(0), 'one kind of process was never killed'],
    [clockSteps >= 10 && skewed === 0, 'nobody has seen a clock step'],
    [clockSteps === 0 && kills >= 50 && process.env.CI === 'true', 'no clock was stepped'],
  ]
  return lacking.flatMap(([isLacking, what]) => (isLacking ? [what] : []))
}

/** Nothing was violated, and what was done shows it. */
async function sound(kills: number, fault?: Fault): Promise<boolean> {
  const began = performance.now()
  const report = await run(kills, fault)
  const { violations, inFlight, ...counts } = report
  const lacking = lacks(kills, report)
  for (const what of lacking) console.log(`this run shows nothing: ${what}`)
  const seconds = Math.round((performance.now() - began) / 1000)
  const inFlightPerKill = (inFlight / Math.max(report.kills, 1)).toFixed(1)
  const rest = { inFlightPerKill, violations: violations.length, seconds, seed }
  figures('kill-test', { engine, ...counts, ...rest })
  return lacking.length === 0 && violations.length === 0
}

/** Each fault is found, and a destination without any is in order. */
async function allBroken(): Promise<boolean> {
  let found = 0
  let wrong = 0
  for (const fault of faultsOf(engine)) {
    const { what, shows }: Planted = FAULTS[fault]
    const isNone = fault === 'none'
    let isFound = false
    for (let tries = isNone ? 1 : FAULTY_RUNS; tries > 0 && !isFound; tries -= 1) {
      const { violations } = await run(FAULTY_KILLS, fault)
      const rules = [...new Set(violations.map(({ rule }) => rule))]
      isFound = shows.some((rule) => rules.includes(rule))
      if (isNone) wrong += rules.length
      console.log(`${fault} (${what}): ${rules.join(', ') || 'nothing'}`)
    }
    if (isFound) found += 1
    else if (!isNone) console.log(`NOT FOUND: ${fault}`)
  }
  const planted = faults.filter((fault) => fault !== 'none').length
  figures('kill-test-broken', { engine, faults: planted, found, wrong, seed })
  return found === planted && wrong === 0
}

const ok = values.broken ? await allBroken() : await sound(kills, values.fault as Fault | undefined)
process.exit(ok ? 0 : 1)
