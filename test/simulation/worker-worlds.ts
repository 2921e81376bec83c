/** Worlds in which `runWithLease` works. */

import type { Plan } from './plan.ts'
import { advance, claim, complete, faults, seal, to, write } from './world-parts.ts'

const real = { name: 'a', destinations: [to], operations: ['x', 'y'], ttlMs: 1000, runs: 1 }

export const workerWorlds: readonly Plan[] = [
  {
    name: 'a worker that renews, and one that waits for its lease',
    destinations: [to],
    real: [{ ...real, operations: ['x'] }],
    workers: [{ name: 'b', steps: [claim, advance, write('x'), seal, complete] }],
    time: [
      { name: 'passes', elapsesMs: 350, times: 2 },
      { name: 'expires', elapsesMs: 1001, times: 1 },
    ],
    timeAtMost: 2,
    short: {
      time: [
        { name: 'passes', elapsesMs: 510, times: 1 },
        { name: 'expires', elapsesMs: 1001, times: 1 },
      ],
      timeAtMost: 1,
    },
    faults: faults(1, { mute: 1, late: 1 }),
  },
  {
    name: 'two workers run with a lease',
    destinations: [to],
    real: [real, { ...real, name: 'b', operations: ['x', 'z'] }],
    time: [{ name: 'passes', elapsesMs: 1001, times: 1 }],
    faults: faults(1, { lose: 1, 'crash-worker': 1 }),
  },
  {
    name: 'a worker whose wall clock jumps',
    destinations: [to],
    real: [real],
    workers: [{ name: 'b', steps: [claim, advance, write('x')] }],
    time: [
      { name: 'passes', elapsesMs: 500, times: 2 },
      { name: 'jumps', moves: { a: 3_600_000 }, times: 1 },
      { name: 'jumps back', moves: { a: -3_600_000 }, times: 1 },
    ],
    timeAtMost: 3,
    short: { timeAtMost: 2 },
  },
]
