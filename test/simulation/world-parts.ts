/** What the small worlds are made of. */

import type { Faults } from './agenda.ts'
import type { Script, Step } from './script-worker.ts'

export const to = 'bank'
export const write = (operationId: string, more: { throws?: true; tries?: number } = {}): Step => ({
  verb: 'write',
  to,
  operationId,
  ...more,
})
export const effect = (operationId: string): Step => ({ verb: 'effect', to, operationId })
export const advance = { verb: 'advance', to } as const
export const seal = { verb: 'seal', to } as const
export const claim = { verb: 'claim', tries: 3 } as const
export const renew = { verb: 'renew' } as const
export const complete = { verb: 'complete' } as const
export const release = { verb: 'release' } as const

/** A worker that has claimed before. */
export function holder(
  name: string,
  generation: number,
  steps: readonly Step[],
  leaseId = name,
): Script {
  return { name, token: { generation, leaseId }, steps }
}

export const faults = (atMost: number, of: Faults['of']): Faults => ({ atMost, of })
export const network = { lose: 1, mute: 1, again: 1, late: 1 }
export const overdue = { name: 'deadline passes', moves: { [to]: 60_001 }, times: 1 }
export const leaseExpires = { name: 'lease expires', moves: { leases: 1001 }, times: 1 }
export const crash = { 'crash-destination': 1 } as const
