/** Calls that are timed, one by one or in a closed loop, and what they came to. */

import { performance } from 'node:perf_hooks'

export interface Load {
  readonly perSecond: number
  /** Of one call, in milliseconds. */
  readonly p50: number
  readonly p99: number
}

export class Samples {
  readonly #began = performance.now()
  readonly #took: number[] = []

  async time<T>(call: () => Promise<T>): Promise<T> {
    const began = performance.now()
    const value = await call()
    this.#took.push(performance.now() - began)
    return value
  }

  get elapsedMs(): number {
    return performance.now() - this.#began
  }

  summary(): Load {
    const sorted = this.#took.toSorted((a, b) => a - b)
    const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN
    return { perSecond: (sorted.length * 1000) / this.elapsedMs, p50: at(0.5), p99: at(0.99) }
  }
}

export type Call = () => Promise<unknown>

/** So many calls in flight at any time, each followed by the next, for so long. */
export async function load(inFlight: number, ms: number, call: Call): Promise<Load> {
  const samples = new Samples()
  const loop = async () => {
    while (samples.elapsedMs < ms) await samples.time(call)
  }
  await Promise.all(Array.from({ length: inFlight }, loop))
  return samples.summary()
}

/** The one in the middle: a round in which the machine was busy elsewhere is left out. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}
