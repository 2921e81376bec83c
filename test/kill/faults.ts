/** Faults that are planted to see that a run finds them: one that finds nothing shows nothing. */

import type { Engine } from './engines/bank.ts'

interface Planted {
  readonly engine: Engine
  /** Where it is: in a destination that shares no code with the package, or beside a real one. */
  readonly in: 'plain destination' | 'resolver' | 'lease service' | 'server'
  readonly what: string
}

export const FAULTS = {
  none: { engine: 'sqlite', in: 'plain destination', what: 'nothing: it is in order' },
  'answers-early': {
    engine: 'sqlite',
    in: 'plain destination',
    what: 'acknowledges before it commits',
  },
  'no-fence': { engine: 'sqlite', in: 'plain destination', what: 'checks no generation' },
  'memory-fence': {
    engine: 'sqlite',
    in: 'plain destination',
    what: 'remembers generations in memory only',
  },
  'memory-records': {
    engine: 'sqlite',
    in: 'plain destination',
    what: 'remembers operations in memory only',
  },
  'records-later': {
    engine: 'sqlite',
    in: 'plain destination',
    what: 'commits the effect first, its record next',
  },
  guesses: {
    engine: 'sqlite',
    in: 'resolver',
    what: 'takes what is not known to be applied for not applied',
  },
  'memory-leases': {
    engine: 'sqlite',
    in: 'lease service',
    what: 'keeps leases in memory only',
  },
  unlogged: {
    engine: 'postgres',
    in: 'server',
    what: 'tables that a crash empties',
  },
  'lazy-log': {
    engine: 'mariadb',
    in: 'server',
    what: 'commits that reach the log a second later',
  },
  'no-log': { engine: 'redis', in: 'server', what: 'no append-only file' },
} as const satisfies Record<string, Planted>

export type Fault = keyof typeof FAULTS

export function faultsOf(engine: Engine): Fault[] {
  return (Object.keys(FAULTS) as Fault[]).filter((fault) => FAULTS[fault].engine === engine)
}
