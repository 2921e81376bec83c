/** The tokens of the jobs that a run works on, and the next ids. */

import type { FencingToken } from 'writefence'
import { ACCOUNTS, GENERATION, jobOf, leaseOf } from './site.ts'

let written = 0

/** An operation id that was not used before, as long as those that were filled in. */
export function newOperation(): string {
  written += 1
  return `write--${String(written).padStart(10, '0')}`
}

export const below = (count: number) => Math.floor(Math.random() * count)
export const anAccount = () => below(ACCOUNTS)

export class Jobs {
  /** How many there are; it grows as more are filled in. */
  count: number
  /** Of those that were advanced; all others are as they were filled in. */
  readonly #generations = new Map<number, number>()

  constructor(count: number) {
    this.count = count
  }

  /** The token of the present holder of a job. */
  tokenOf(job: number): FencingToken {
    const generation = this.#generations.get(job) ?? GENERATION
    return { jobId: jobOf(job), generation, leaseId: leaseOf(job) }
  }

  any(): FencingToken {
    return this.tokenOf(below(this.count))
  }

  /** The token of a new holder, who takes some job over. */
  next(): FencingToken {
    const job = below(this.count)
    this.#generations.set(job, (this.#generations.get(job) ?? GENERATION) + 1)
    return this.tokenOf(job)
  }
}
