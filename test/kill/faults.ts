/** Faults that are planted to see that a run finds them: one that finds nothing shows nothing. */

import type { Engine } from './engines/bank.ts'

export interface Planted {
  readonly engine: Engine
  /** Where it is: in a destination that shares no code with the package, or beside a real one. */
  readonly in: 'plain destination' | 'resolver' | 'lease service' | 'server'
  readonly what: string
  /** The rules that it breaks: one of them at least has to be seen. */
  readonly shows: readonly string[]
}

export const FAULTS = {
  none: { engine: 'sqlite', in: 'plain destination', what: 'nothing: it is in order', shows: [] },
  'answers-early': {
    engine: 'sqlite',
    in: 'plain destination',
    what: 'acknowledges before it commits',
    shows: ['acknowledged_lost'],
  },
  'no-fence': {
    engine: 'sqlite',
    in: 'plain destination',
    what: 'checks no generation',
    shows: ['stale_accepted', 'generation_fell'],
  },
  'memory-fence': {
    engine: 'sqlite',
    in: 'plain destination',
    what: 'remembers generations in memory only',
    shows: ['stale_accepted', 'generation_fell'],
  },
  'memory-records': {
    engine: 'sqlite',
    in: 'plain destination',
    what: 'remembers operations in memory only',
    shows: ['applied_twice'],
  },
  'records-later': {
    engine: 'sqlite',
    in: 'plain destination',
    what: 'commits the effect first, its record next',
    shows: ['applied_twice'],
  },
  guesses: {
    engine: 'sqlite',
    in: 'resolver',
    what: 'takes what is not known to be applied for not applied',
    shows: ['applied_twice'],
  },
  'memory-leases': {
    engine: 'sqlite',
    in: 'lease service',
    what: 'keeps leases in memory only',
    shows: ['lease_generation_reused'],
  },
  unlogged: {
    engine: 'postgres',
    in: 'server',
    what: 'tables that a crash empties',
    shows: ['applied_twice'],
  },
  'lazy-log': {
    engine: 'mariadb',
    in: 'server',
    what: 'commits that reach the log a second later',
    shows: ['acknowledged_lost'],
  },
  'no-log': {
    engine: 'redis',
    in: 'server',
    what: 'no append-only file',
    shows: ['acknowledged_lost'],
  },
} as const satisfies Record<string, Planted>

export type Fault = keyof typeof FAULTS

export function faultsOf(engine: Engine): Fault[] {
  return (Object.keys(FAULTS) as Fault[]).filter((fault) => FAULTS[fault].engine === engine)
}
