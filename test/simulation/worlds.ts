/** The small worlds that are explored in full. */

import { effectWorlds } from './effect-worlds.ts'
import { guardWorlds } from './guard-worlds.ts'
import { leaseWorlds } from './lease-worlds.ts'
import type { Plan } from './plan.ts'
import { workerWorlds } from './worker-worlds.ts'

export const worlds: readonly Plan[] = [
  ...guardWorlds,
  ...effectWorlds,
  ...leaseWorlds,
  ...workerWorlds,
]
