/** Some seeds to simulate, as they are told to another process. */

import { describeHistory } from './describe-history.ts'
import { type Engine, labOf } from './lab.ts'
import type { Plan } from './plan.ts'
import { shrink } from './shrink.ts'
import { type Run, Simulator } from './simulation.ts'
import { install } from './virtual-host.ts'

export interface SimulateTask {
  readonly from: number
  readonly runs: number
  /** SQLite unless told. */
  readonly engine?: Engine | undefined
}

/** A seed that broke a rule, made short. */
export interface Failure {
  readonly seed: number
  readonly rule: string
  readonly message: string
  readonly steps: readonly string[]
  /** How many steps there were before. */
  readonly of: number
  readonly history: readonly string[]
}

export interface Simulated {
  readonly runs: number
  readonly steps: number
  readonly effects: number
  readonly refusals: number
  readonly failures: readonly Failure[]
}

export async function simulateTask(
  { from, runs, engine }: SimulateTask,
  bend?: (plan: Plan) => Plan,
): Promise<Simulated> {
  const simulator = new Simulator(await labOf(engine))
  const restore = install(() => simulator.host)
  const sum = { runs, steps: 0, effects: 0, refusals: 0, failures: [] as Failure[] }
  try {
    for (let seed = from; seed < from + runs; seed += 1) {
      const run = await simulator.run(seed, bend)
      sum.steps += run.steps.length
      sum.effects += run.history.filter(({ event }) => event === 'applied').length
      sum.refusals += run.history.filter((each) => each.event === 'answer' && each.code).length
      if (run.broken.length > 0) sum.failures.push(failure(seed, run, await shrink(simulator, run)))
    }
  } finally {
    restore()
  }
  return sum
}

function failure(seed: number, run: Run, { broken, steps, history }: Run): Failure {
  const { rule = '', message = '' } = broken[0] ?? {}
  const of = run.steps.length
  return { seed, rule, message, steps, of, history: describeHistory(history) }
}

/** One seed as it is, for reading. */
export async function simulateSeed(seed: number, engine?: Engine): Promise<Run> {
  const simulator = new Simulator(await labOf(engine))
  const restore = install(() => simulator.host)
  try {
    return await simulator.run(seed)
  } finally {
    restore()
  }
}
