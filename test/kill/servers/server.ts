/** What a run has of an engine besides its processes. */

import type { Effect, Engine } from '../engines/bank.ts'
import type { Traced } from '../evidence.ts'
import type { Fault } from '../faults.ts'

/** A way to harm the server itself. */
interface Harm {
  /** Whether a process is killed, or only a connection is cut. */
  readonly kind: 'kill' | 'cut'
  /** Resolves once the server answers again; `false` where there was nothing to harm. */
  run(): Promise<boolean>
}

export interface Server {
  readonly engine: Engine
  /** What the children are told of it. */
  readonly where: string
  readonly harms: readonly Harm[]
  /** All effects that are there, in their order. */
  effects(): Promise<Traced[]>
  /** Its processes are gone. */
  close(): Promise<void>
}

/** What there is to build on. */
export interface Ground {
  /** A folder of the run's own, below the repository. */
  readonly directory: string
  /** The same outside of it, where other users get at it. */
  readonly outside: string
  /** The environment that makes the clocks of a process step. */
  readonly clockEnv: NodeJS.ProcessEnv
  readonly random: () => number
  readonly fault: Fault | undefined
}

export function tracesOf(rows: readonly unknown[]): Traced[] {
  return (rows as Effect[]).map(({ job, operation, generation, lease, nonce }) => ({
    event: 'applied',
    destination: 'bank',
    jobId: job,
    generation: Number(generation),
    leaseId: lease,
    operationId: operation,
    nonce,
  }))
}
