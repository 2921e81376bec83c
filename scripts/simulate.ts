/**
 * Large worlds from seeds, on the real stores, guard and worker, in virtual time:
 * `npm run simulate -- [--short] [--runs N] [--from N] [--engine <name>]`, or
 * `npm run simulate -- --seed N [--history <file>] [--engine <name>]`
 *
 * Runs the seeds from `--from` (1 unless told) on: 100 000 of them, or 10 000 with `--short`. A
 * seed that breaks a rule is made short and shown. `--seed` runs one, and shows all of it;
 * `--history` writes what `check:history` reads. Engines are sqlite, postgres, mariadb, redis; the
 * servers are those of the tests.
 */

import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { describeHistory } from '../test/simulation/describe-history.ts'
import { formatHistory } from '../test/simulation/history.ts'
import { type Engine, endLabs, engineOf } from '../test/simulation/lab.ts'
import { inProcesses, PROCESS_FLAG, work } from '../test/simulation/pool.ts'
import {
  type Failure,
  type Simulated,
  type SimulateTask,
  simulateSeed,
  simulateTask,
} from '../test/simulation/simulate-task.ts'

/** Few where each takes long, so that progress is seen. */
const BATCH: Readonly<Record<Engine, number>> = {
  sqlite: 200,
  postgres: 10,
  mariadb: 10,
  redis: 10,
}
const PROGRESS_MS = 10_000

async function simulate(engine: Engine, runs: number, from: number): Promise<boolean> {
  const began = performance.now()
  const batch = BATCH[engine]
  const sum = { runs: 0, steps: 0, effects: 0, refusals: 0, violations: 0 }
  const said = () => {
    const seconds = (performance.now() - began) / 1000
    const { runs: done, violations, ...counts } = sum
    const judged = Object.entries(counts).map(([name, count]) => `${name}=${count}`)
    const rate = `seconds=${seconds.toFixed(1)} rate=${(done / seconds).toFixed(1)}/s`
    return `engine=${engine} runs=${done} ${rate} ${judged.join(' ')} violations=${violations}`
  }
  let told = began
  await inProcesses<SimulateTask, Simulated>(new URL(import.meta.url), batches(), (result) => {
    sum.runs += result.runs
    sum.steps += result.steps
    sum.effects += result.effects
    sum.refusals += result.refusals
    sum.violations += result.failures.length
    for (const failure of result.failures) report(engine, failure)
    if (performance.now() - told < PROGRESS_MS) return
    told = performance.now()
    console.log(`  ${said()} of=${runs}`)
  })
  console.log(`simulate: ${said()}`)
  return sum.runs === runs && sum.violations === 0

  function* batches(): Generator<SimulateTask> {
    for (let done = 0; done < runs; done += batch) {
      yield { engine, from: from + done, runs: Math.min(batch, runs - done) }
    }
  }
}

function report(engine: Engine, { seed, rule, message, steps, of, history }: Failure): void {
  console.log(`seed ${seed} VIOLATED ${rule}: ${message}`)
  console.log(`  ${steps.length} steps, left of ${of}:\n    ${steps.join('\n    ')}`)
  console.log(`  history:\n${history.join('\n')}`)
  console.log(`  the whole of it: npm run simulate -- --engine ${engine} --seed ${seed}`)
}

async function show(engine: Engine, seed: number, file?: string): Promise<boolean> {
  const { steps, history, broken, plan } = await simulateSeed(seed, engine)
  await endLabs()
  if (file !== undefined) writeFileSync(file, formatHistory(history))
  console.log(JSON.stringify(plan, undefined, 2))
  console.log(`${steps.join('\n')}\n${describeHistory(history).join('\n')}`)
  for (const { rule, message } of broken) console.log(`VIOLATED ${rule}: ${message}`)
  console.log(`simulate: engine=${engine} runs=1 steps=${steps.length} violations=${broken.length}`)
  return broken.length === 0
}

function count(name: string, text: string | undefined, otherwise: number): number {
  const value = text === undefined ? otherwise : Number(text)
  if (Number.isSafeInteger(value) && value >= 1) return value
  console.error(`--${name} takes a positive integer, not ${text}`)
  process.exit(2)
}

if (process.argv.includes(PROCESS_FLAG)) {
  work((task: SimulateTask) => simulateTask(task), endLabs)
} else {
  const text = { type: 'string' } as const
  const { values } = parseArgs({
    options: {
      short: { type: 'boolean', default: false },
      engine: { type: 'string', default: 'sqlite' },
      runs: text,
      from: text,
      seed: text,
      history: text,
    },
  })
  const runs = count('runs', values.runs, values.short ? 10_000 : 100_000)
  const engine = engineOf(values.engine)
  const ok =
    values.seed === undefined
      ? await simulate(engine, runs, count('from', values.from, 1))
      : await show(engine, count('seed', values.seed, 1), values.history)
  process.exitCode = ok ? 0 : 1
}
