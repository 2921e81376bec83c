/** The command line of the measurement. */

import { parseArgs } from 'node:util'
import { ENGINES, type Engine } from './site.ts'

export const SECTIONS = [
  'fences',
  'records',
  'hot',
  'neighbours',
  'workers',
  'polling',
  'destinations',
  'pool',
  'updates',
  'stores',
] as const
export type Section = (typeof SECTIONS)[number]

export interface Options {
  readonly short: boolean
  readonly engines: readonly Engine[]
  readonly sections: readonly Section[]
  /** How many fences, lowest first. */
  fencesOf(engine: Engine): readonly number[]
  /** How long one figure is measured, in milliseconds, and how many times. */
  readonly ms: number
  readonly rounds: number
}

const LARGEST: Readonly<Record<Engine, number>> = {
  sqlite: 1e7,
  postgres: 1e7,
  mariadb: 1e6,
  redis: 1e6,
}
const SIZES = [1e3, 1e4, 1e5, 1e6, 1e7]

/** @throws TypeError or RangeError naming the option */
export function optionsFrom(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      short: { type: 'boolean', default: false },
      engine: { type: 'string' },
      only: { type: 'string' },
      fences: { type: 'string' },
    },
  })
  const { short } = values
  const given = values.fences?.split(',').map(toCount)
  return {
    short,
    engines: chosen('engine', values.engine, ENGINES),
    sections: chosen('only', values.only, SECTIONS),
    fencesOf: (engine) => {
      const sizes = given ?? (short ? [100, 1000] : SIZES.filter((size) => size <= LARGEST[engine]))
      return sizes.toSorted((a, b) => a - b)
    },
    ms: short ? 30 : 400,
    rounds: short ? 1 : 5,
  }
}

function chosen<T extends string>(name: string, value: string | undefined, all: readonly T[]) {
  if (value === undefined) return all
  return value.split(',').map((each) => {
    const found = all.find((one) => one === each)
    if (found === undefined) throw new RangeError(`--${name} must be of ${all.join(', ')}: ${each}`)
    return found
  })
}

function toCount(text: string): number {
  const count = Number(text)
  if (!Number.isInteger(count) || count < 1 || count > 1e8) {
    throw new RangeError(`--fences must be counts such as 1000,1e6: ${text}`)
  }
  return count
}
