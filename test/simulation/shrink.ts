/**
 * Makes a failing run short: fewer steps, fewer workers, as long as the same rule is broken (delta
 * debugging: Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE TSE
 * 28, 2002).
 */

import type { Plan } from './plan.ts'
import type { Run, Simulator } from './simulation.ts'

export async function shrink(simulator: Simulator, failing: Run): Promise<Run> {
  const rule = failing.broken[0]?.rule
  let best = failing
  /** Keeps what fails the same way. */
  const tries = async (plan: Plan, steps: readonly string[]): Promise<boolean> => {
    const run = await simulator.replay(plan, steps)
    const same = run.broken[0]?.rule === rule
    if (same) best = run
    return same
  }

  for (let size = best.steps.length; size >= 1; size = Math.floor(size / 2)) {
    for (let at = 0; at < best.steps.length; ) {
      const { plan, steps } = best
      const removed = await tries(plan, [...steps.slice(0, at), ...steps.slice(at + size)])
      if (!removed) at += size
    }
  }
  for (let index = 0; ; ) {
    const plan = without(best.plan, index)
    if (plan === undefined) return best
    if (!(await tries(plan, best.steps))) index += 1
  }
}

/** The plan without one of its workers; `undefined` where there are no more. */
function without(plan: Plan, index: number): Plan | undefined {
  const { workers = [], real = [] } = plan
  if (index >= workers.length + real.length) return undefined
  const kept = <T>(all: readonly T[], at: number) => all.filter((_, i) => i !== at)
  return { ...plan, workers: kept(workers, index), real: kept(real, index - workers.length) }
}
