/**
 * Every interleaving of small worlds, on the real stores, guard and worker:
 * `npm run explore -- [--short] [--broken] [--world <part of a name>] [--engine <name>]`
 *
 * `--short` allows one fault a world, and the largest ones less of what they have; otherwise each
 * has its own budget. `--broken` puts stores with known faults in place of the real ones: each has
 * to be found out. Engines are sqlite, postgres, mariadb, redis; the servers are those of the
 * tests.
 */

import { parseArgs } from 'node:util'
import { allBroken, type ExploreTask, exploreTask } from '../test/simulation/explore-task.ts'
import type { Explored } from '../test/simulation/explorer.ts'
import { type Engine, endLabs, engineOf } from '../test/simulation/lab.ts'
import { inProcesses, PROCESS_FLAG, work } from '../test/simulation/pool.ts'
import { worlds } from '../test/simulation/worlds.ts'

const here = new URL(import.meta.url)
const PROGRESS_MS = 10_000

async function exploreAll(engine: Engine, short: boolean, part: string): Promise<boolean> {
  const names = worlds.map(({ name }) => name).filter((name) => name.includes(part))
  // The largest are among the last of the list: they begin first.
  const tasks = names.reverse().map((world) => ({ world, engine, short }))
  const sum = { worlds: 0, schedules: 0, states: 0, rests: 0, steps: 0, violations: 0 }
  const began = performance.now()
  let told = began
  const tell = (progress: string) => {
    if (performance.now() - told < PROGRESS_MS) return
    told = performance.now()
    const seconds = ((told - began) / 1000).toFixed(0)
    console.log(`  ${seconds} s, ${sum.worlds} of ${tasks.length} worlds; ${progress}`)
  }
  const add = (explored: Explored) => {
    const { plan, schedules, states, rests, steps, violations } = explored
    console.log(`${plan}: schedules=${schedules} states=${states}`)
    for (const found of violations) report(found)
    sum.worlds += 1
    sum.schedules += schedules
    sum.states += states
    sum.rests += rests
    sum.steps += steps
    sum.violations += violations.length
  }
  await inProcesses(here, tasks, add, tell)
  const { schedules, states, rests, steps } = sum
  console.log(
    `explore: engine=${engine} worlds=${sum.worlds} schedules=${schedules} states=${states}` +
      ` rests=${rests} steps=${steps} violations=${sum.violations}`,
  )
  return sum.worlds > 0 && sum.violations === 0
}

/** Each broken store has to be found out in the world that is there for it. */
async function exploreBroken(engine: Engine): Promise<boolean> {
  const short = true
  const tasks = allBroken.map(({ name: broken, world }) => ({ world, engine, short, broken }))
  let found = 0
  await inProcesses<ExploreTask, Explored>(here, tasks, ({ plan, violations }, { broken }) => {
    const [first] = violations
    const rule = first?.broken[0]?.rule
    if (rule !== undefined) found += 1
    const after = `${first?.path.length} steps of "${plan}"`
    console.log(rule === undefined ? `${broken}: NOT FOUND` : `${broken}: ${rule}, after ${after}`)
  })
  console.log(`explore-broken: engine=${engine} stores=${tasks.length} found=${found}`)
  return found === tasks.length
}

function report({ path, broken, history }: Explored['violations'][number]): void {
  for (const { rule, message } of broken) console.log(`  VIOLATED ${rule}: ${message}`)
  console.log(`  steps:\n    ${path.join('\n    ')}`)
  console.log(`  history:\n${history.join('\n')}`)
}

if (process.argv.includes(PROCESS_FLAG)) {
  work(exploreTask, endLabs)
} else {
  const { values } = parseArgs({
    options: {
      short: { type: 'boolean', default: false },
      broken: { type: 'boolean', default: false },
      world: { type: 'string', default: '' },
      engine: { type: 'string', default: 'sqlite' },
    },
  })
  const { short, broken, world } = values
  const engine = engineOf(values.engine)
  const ok = broken ? await exploreBroken(engine) : await exploreAll(engine, short, world)
  process.exitCode = ok ? 0 : 1
}
