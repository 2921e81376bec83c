/** What holds of simulated and explored worlds on every engine, as it does on SQLite. */

import { afterAll, expect, it } from 'vitest'
import { allBroken, exploreTask } from '../simulation/explore-task.ts'
import { explore } from '../simulation/explorer.ts'
import { formatHistory } from '../simulation/history.ts'
import { type Engine, endLabs, labOf } from '../simulation/lab.ts'
import type { Plan } from '../simulation/plan.ts'
import { simulateSeed, simulateTask } from '../simulation/simulate-task.ts'
import { claim, faults, release, to, write } from '../simulation/world-parts.ts'
import { describeEngine, problemOf } from './engine.ts'

/** For a machine that is busy with other tests. */
const patiently = { timeout: 300_000 }

/** Seeds in which no two requests come together: their answers have one order on all engines. */
const apart = [2, 9, 20, 26]
/** Seeds in which some do. */
const together = [15, 51]

/** Destinations that crash and a lease service that is put back, claims, refusals, retries. */
const small: Plan = {
  name: 'small',
  destinations: [to],
  workers: [
    { name: 'a', steps: [claim, write('x'), release] },
    { name: 'b', steps: [{ ...claim, tries: 1 }, write('x', { throws: true, tries: 1 })] },
  ],
  foreign: true,
  faults: faults(1, { restore: 1, 'crash-destination': 1 }),
}

/** Faults that show early, of fence stores and of a lease store. */
const planted = ['compares with !=', 'rolls the fence back with the effect', 'grants what is held']

export async function describeWorlds(name: string, engine: Engine): Promise<void> {
  const problem = await problemOf(() => labOf(engine))
  afterAll(endLabs)

  describeEngine(`worlds on ${name}`, problem, () => {
    it('of thirty seeds break no rule, and are busy ones', patiently, async () => {
      const { failures, effects, refusals } = await simulateTask({ from: 1, runs: 30, engine })
      expect(failures).toEqual([])
      expect(effects).toBeGreaterThan(100)
      expect(refusals).toBeGreaterThan(20)
    })

    it.each(apart)('go as on SQLite, to the letter, for seed %i', patiently, async (seed) => {
      const [here, there] = [await simulateSeed(seed, engine), await simulateSeed(seed)]
      expect(here.steps).toEqual(there.steps)
      expect(formatHistory(here.history)).toBe(formatHistory(there.history))
    })

    it.each(together)(
      'go the same way twice, to the letter, for seed %i',
      patiently,
      async (seed) => {
        const [first, again] = [await simulateSeed(seed, engine), await simulateSeed(seed, engine)]
        expect(first.plan.together).toBe(true)
        expect(again.steps).toEqual(first.steps)
        expect(formatHistory(again.history)).toBe(formatHistory(first.history))
      },
    )

    it('explored in full have the states that they have on SQLite', patiently, async () => {
      const { violations, steps: _, ...here } = await explore(small, await labOf(engine))
      expect(violations).toEqual([])
      expect(here.states).toBeGreaterThan(100)
      expect(await explore(small, await labOf())).toMatchObject(here)
    })

    it.each(planted)('show that a store %s', patiently, async (broken) => {
      const { world = '' } = allBroken.find((each) => each.name === broken) ?? {}
      const { violations } = await exploreTask({ world, short: true, broken, engine })
      expect(violations).toHaveLength(1)
    })
  })
}
