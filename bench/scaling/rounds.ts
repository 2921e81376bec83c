/** Several loads, measured in turns, so that whatever else the machine does is done to all. */

import { type Call, load, median } from './load.ts'
import type { Options } from './options.ts'

export interface Rates<Name extends string> {
  /** Calls a second: the median of all rounds. */
  rate(name: Name): number
  /** Calls a second of one over those of another: the median of the rounds' own ratios. */
  ratio(name: Name, over: Name): number
}

export async function inTurns<Name extends string>(
  inFlight: number,
  { ms, rounds }: Pick<Options, 'ms' | 'rounds'>,
  calls: Readonly<Record<Name, Call>>,
): Promise<Rates<Name>> {
  const names = Object.keys(calls) as Name[]
  const seen: Record<string, number>[] = []
  for (let round = 0; round < rounds; round += 1) {
    const rates: Record<string, number> = {}
    // Every other round goes the other way about: nobody is always behind the same one.
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      rates[name] = (await load(inFlight, ms, calls[name])).perSecond
    }
    seen.push(rates)
  }
  const of = (name: Name) => seen.map((rates) => rates[name] ?? Number.NaN)
  return {
    rate: (name) => median(of(name)),
    ratio: (name, over) => median(of(name).map((rate, i) => rate / (of(over)[i] ?? Number.NaN))),
  }
}
