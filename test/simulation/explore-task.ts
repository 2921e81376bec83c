/** One world to explore, as it is told to another process. */

import { brokenLeases } from './broken-leases.ts'
import { brokenStores } from './broken-stores.ts'
import { type Explored, explore } from './explorer.ts'
import { type Engine, labOf } from './lab.ts'
import type { Plan } from './plan.ts'
import { worlds } from './worlds.ts'

export interface ExploreTask {
  readonly world: string
  /** SQLite unless told. */
  readonly engine?: Engine | undefined
  /** One fault at the most, unless the world has its own short form. */
  readonly short: boolean
  /** Whose store is put in place of the real one. */
  readonly broken?: string | undefined
}

/** Stores that have to be found out. */
export const allBroken = [...brokenStores, ...brokenLeases]

export async function exploreTask(
  task: ExploreTask,
  tell?: (progress: string) => void,
): Promise<Explored> {
  const onProgress = ({ plan, states, steps }: Explored) =>
    tell?.(`${plan}: states=${states} steps=${steps} so far`)
  return explore(planOf(task), await labOf(task.engine), { onProgress })
}

/** @throws RangeError where there is no such world, or no such broken store */
function planOf({ world, short, broken }: ExploreTask): Plan {
  const plan = worlds.find(({ name }) => name === world)
  const other = allBroken.find(({ name }) => name === broken)
  if (plan === undefined) throw new RangeError(`there is no world "${world}"`)
  if (broken !== undefined && other === undefined) throw new RangeError(`nothing is "${broken}"`)
  const { faults } = plan
  const atMost = Math.min(faults?.atMost ?? 0, 1)
  const less = short ? { faults: faults && { ...faults, atMost }, ...plan.short } : {}
  return { ...plan, ...less, ...other, name: world }
}
