/** One world to explore, as it is told to another process. */

import { brokenLeases } from './broken-leases.ts'
import { brokenStores } from './broken-stores.ts'
import { type Explored, explore } from './explorer.ts'
import { Lab } from './lab.ts'
import type { Plan } from './plan.ts'
import { worlds } from './worlds.ts'

export interface ExploreTask {
  readonly world: string
  /** One fault at the most. */
  readonly short: boolean
  /** Whose store is put in place of the real one. */
  readonly broken?: string | undefined
}

/** Stores that have to be found out. */
export const allBroken = [...brokenStores, ...brokenLeases]

const lab = new Lab()

export function exploreTask(task: ExploreTask): Promise<Explored> {
  return explore(planOf(task), lab)
}

/** @throws RangeError where there is no such world, or no such broken store */
function planOf({ world, short, broken }: ExploreTask): Plan {
  const plan = worlds.find(({ name }) => name === world)
  const other = allBroken.find(({ name }) => name === broken)
  if (plan === undefined) throw new RangeError(`there is no world "${world}"`)
  if (broken !== undefined && other === undefined) throw new RangeError(`nothing is "${broken}"`)
  const { faults } = plan
  const atMost = Math.min(faults?.atMost ?? 0, short ? 1 : Number.POSITIVE_INFINITY)
  return { ...plan, ...other, name: world, faults: faults && { ...faults, atMost } }
}
