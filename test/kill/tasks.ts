/** What the processes of a run are told as they start. */

import type { Engine } from './engines/bank.ts'
import type { Fault } from './faults.ts'

export interface DestinationTask {
  readonly engine: Engine
  readonly where: string
  /** By which all times are longer than on an idle machine. */
  readonly slowness: number
  /** The base URL of the third system. */
  readonly third: string
  /** Effects of a job go to one of `count` destinations only: the one with its number. */
  readonly index: number
  readonly count: number
  /** What is wrong with it, where that is what a run is to find. */
  readonly fault: Fault | undefined
}

/** Which destination runs the effects of a job, so that one process knows all that runs. */
export function shardOf(job: string, count: number): number {
  return Number(job.replace('job-', '')) % count
}

export interface LeaseTask {
  readonly engine: Engine
  readonly where: string
  readonly slowness: number
  /** `false` where it is to forget all leases with its process. */
  readonly kept: boolean
}

export interface WorkerTask {
  readonly history: string
  readonly slowness: number
  /** No other process of the run, past ones included, has this name. */
  readonly name: string
  /** By which the proxies know it. */
  readonly slot: string
  readonly leases: string
  readonly bank: string
  readonly jobs: number
  readonly workers: number
  /** The routes that are written to. */
  readonly kinds: readonly string[]
}
