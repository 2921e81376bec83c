/** The small worlds that are explored in full. */

import type { Faults } from './agenda.ts'
import type { Plan } from './plan.ts'
import type { Script, Step } from './script-worker.ts'

const to = 'bank'
const write = (operationId: string, more: { throws?: true; tries?: number } = {}): Step => ({
  verb: 'write',
  to,
  operationId,
  ...more,
})
const effect = (operationId: string): Step => ({ verb: 'effect', to, operationId })
const advance = { verb: 'advance', to } as const
const seal = { verb: 'seal', to } as const
const claim = { verb: 'claim', tries: 3 } as const
const renew = { verb: 'renew' } as const
const complete = { verb: 'complete' } as const
const release = { verb: 'release' } as const

/** A worker that has claimed before. */
function holder(name: string, generation: number, steps: readonly Step[], leaseId = name): Script {
  return { name, token: { generation, leaseId }, steps }
}

const faults = (atMost: number, of: Faults['of']): Faults => ({ atMost, of })
const network = { lose: 1, mute: 1, again: 1, late: 1 }
const overdue = { name: 'deadline passes', moves: { [to]: 60_001 }, times: 1 }

const guardWorlds: readonly Plan[] = [
  {
    name: 'two generations write and retry',
    destinations: [to],
    workers: [
      holder('a', 1, [write('x'), write('y')]),
      holder('b', 2, [advance, write('x'), write('z')]),
    ],
    faults: faults(2, { ...network, again: 2, 'crash-destination': 1 }),
  },
  {
    name: 'writes of one turn share a transaction',
    destinations: [to],
    workers: [
      holder('a', 1, [write('x'), write('y')]),
      holder('b', 2, [write('x'), write('z')]),
      holder('c', 3, [write('y')]),
    ],
    together: true,
    faults: faults(1, { again: 1, late: 1 }),
  },
  {
    name: 'effects that throw inside the transaction',
    destinations: [to],
    workers: [
      holder('a', 1, [write('x', { throws: true, tries: 1 }), write('y')]),
      holder('b', 2, [write('x', { throws: true, tries: 1 }), write('x')]),
    ],
    together: true,
    faults: faults(2, { again: 1, late: 1, mute: 1, 'crash-destination': 1 }),
  },
  {
    name: 'a store that fails before or after its transaction',
    destinations: [to],
    workers: [holder('a', 1, [write('x'), write('y')]), holder('b', 2, [advance, write('x')])],
    gate: 'all',
    faults: faults(2, { 'fail-before': 1, 'fail-after': 1, 'crash-destination': 1, late: 1 }),
  },
  {
    name: 'a job is sealed, and reopened by an operator',
    destinations: [to],
    workers: [
      holder('a', 1, [write('x'), seal]),
      holder('b', 2, [write('y'), seal]),
      { name: 'operator', steps: [{ verb: 'reopen', to }] },
    ],
    faults: faults(1, { again: 1, late: 1, mute: 1 }),
  },
  {
    name: 'two holders of one generation',
    destinations: [to],
    workers: [
      holder('a', 1, [advance, write('x')]),
      holder('b', 1, [write('x'), write('y')]),
      { name: 'c', token: { generation: 1 }, steps: [write('z')] },
    ],
    foreign: true,
    faults: faults(1, { again: 1, late: 1, 'crash-destination': 1 }),
  },
  {
    name: 'two jobs and two scopes',
    destinations: [to],
    workers: [
      { ...holder('a', 1, [write('x')]), jobId: 'j' },
      { ...holder('b', 2, [write('x')]), jobId: 'j', scope: 's' },
      { ...holder('c', 3, [write('x')]), jobId: 'k' },
    ],
    faults: faults(2, { again: 2, 'crash-destination': 1 }),
  },
]

const endings = { 'land-silent': 1, 'land-broken': 1, break: 1, refuse: 1 }
const crash = { 'crash-destination': 1 }

const effectWorlds: readonly Plan[] = [
  {
    name: 'effects elsewhere, and a take-over that waits',
    destinations: [to],
    workers: [
      holder('a', 1, [effect('x'), effect('y')]),
      holder('b', 2, [{ ...advance, tries: 3 }, effect('x'), write('z')]),
    ],
    gate: 'later',
    time: [overdue],
    faults: faults(2, { ...endings, ...crash, mute: 1 }),
  },
  {
    name: 'effects elsewhere, and a take-over that does not wait',
    destinations: [to],
    workers: [holder('a', 1, [effect('x')]), holder('b', 2, [write('z'), effect('x')])],
    gate: 'later',
    time: [overdue],
    faults: faults(2, { ...endings, ...crash, again: 1, late: 1 }),
  },
  {
    name: 'an operator resolves what is overdue',
    destinations: [to],
    workers: [
      holder('a', 1, [effect('x')]),
      holder('b', 2, [effect('x'), write('z')]),
      { name: 'operator', steps: [{ verb: 'resolve', to, operationId: 'x', tries: 3 }] },
    ],
    gate: 'later',
    time: [overdue],
    faults: faults(2, { ...endings, ...crash }),
  },
  {
    name: 'the next attempt finds out what became of the last',
    destinations: [to],
    workers: [holder('a', 1, [effect('x')]), holder('b', 2, [effect('x'), effect('y')])],
    effects: { onUnknown: 'find_out' },
    gate: 'later',
    time: [overdue],
    faults: faults(2, { ...endings, ...crash, late: 1 }),
  },
  {
    name: 'the next attempt runs it again, and the third system knows it',
    destinations: [to],
    workers: [holder('a', 1, [effect('x')]), holder('b', 2, [effect('x'), effect('y')])],
    effects: { onUnknown: 'rerun' },
    deduplicates: true,
    gate: 'later',
    time: [overdue],
    faults: faults(2, { ...endings, ...crash, late: 1 }),
  },
  {
    name: 'effects elsewhere on a store that fails',
    destinations: [to],
    workers: [holder('a', 1, [effect('x')]), holder('b', 2, [effect('x'), write('z')])],
    gate: 'all',
    time: [overdue],
    faults: faults(2, { 'fail-before': 1, 'fail-after': 1, ...crash }),
  },
  {
    name: 'a seal while an effect is under way',
    destinations: [to],
    workers: [
      holder('a', 1, [effect('x')]),
      holder('b', 2, [seal, effect('x')]),
      { name: 'operator', steps: [{ verb: 'reopen', to }] },
    ],
    gate: 'later',
    time: [overdue],
    faults: faults(1, { ...endings, ...crash }),
  },
]

const leaseExpires = { name: 'lease expires', moves: { leases: 1001 }, times: 1 }
const setBack = { name: 'clock set back', moves: { leases: -3_600_000 }, times: 1 }
const setForward = {
  name: 'clock set forward',
  moves: { leases: 3_600_000, [to]: 60_001 },
  times: 1,
}

const leaseWorlds: readonly Plan[] = [
  {
    name: 'claim, write, seal, complete',
    destinations: [to],
    workers: [
      { name: 'a', steps: [claim, advance, write('x'), seal, complete] },
      { name: 'b', steps: [claim, advance, write('x'), write('y'), complete] },
    ],
    time: [leaseExpires],
    faults: faults(1, { ...network, 'crash-worker': 1 }),
  },
  {
    name: 'claims and renewals while the clock is set back and forward',
    destinations: [to],
    workers: [
      { name: 'a', steps: [claim, write('x'), renew, write('y'), release] },
      { name: 'b', steps: [claim, write('z'), complete] },
    ],
    time: [leaseExpires, setBack, setForward],
    faults: faults(1, { lose: 1, mute: 1, again: 1, late: 1 }),
  },
  {
    name: 'an operator takes a lease away, raises and reopens',
    destinations: [to],
    workers: [
      { name: 'a', steps: [claim, write('x'), complete] },
      { name: 'b', steps: [claim, write('y'), release] },
      {
        name: 'operator',
        steps: [{ verb: 'force_release' }, { verb: 'raise', atLeast: 3 }, { verb: 'reopen_lease' }],
      },
    ],
    time: [leaseExpires],
    faults: faults(1, { again: 1, late: 1, mute: 1 }),
  },
  {
    name: 'two destinations of one job',
    destinations: [to, 'shop'],
    workers: [
      {
        name: 'a',
        steps: [claim, write('x'), { verb: 'write', to: 'shop', operationId: 'x' }, release],
      },
      {
        name: 'b',
        steps: [
          claim,
          advance,
          { verb: 'advance', to: 'shop' },
          write('x'),
          { verb: 'write', to: 'shop', operationId: 'y' },
        ],
      },
    ],
    time: [leaseExpires],
    faults: faults(1, { late: 1, again: 1, ...crash }),
  },
]

const real = { name: 'a', destinations: [to], operations: ['x', 'y'], ttlMs: 1000, runs: 1 }

const workerWorlds: readonly Plan[] = [
  {
    name: 'a worker that renews, and one that waits for its lease',
    destinations: [to],
    real: [{ ...real, operations: ['x'] }],
    workers: [{ name: 'b', steps: [claim, advance, write('x'), seal, complete] }],
    time: [{ name: 'passes', elapsesMs: 350, times: 3 }],
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
  },
]

export const worlds: readonly Plan[] = [
  ...guardWorlds,
  ...effectWorlds,
  ...leaseWorlds,
  ...workerWorlds,
]
