/** Worlds of a guard and tokens that were claimed before. */

import type { Plan } from './plan.ts'
import { advance, crash, faults, holder, network, seal, to, write } from './world-parts.ts'

export const guardWorlds: readonly Plan[] = [
  {
    name: 'two generations write and retry',
    destinations: [to],
    workers: [
      holder('a', 1, [write('x'), write('y')]),
      holder('b', 2, [advance, write('x'), write('z')]),
    ],
    faults: faults(2, { ...network, again: 2, ...crash }),
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
    faults: faults(2, { again: 1, late: 1, mute: 1, ...crash }),
  },
  {
    name: 'a store that fails before or after its transaction',
    destinations: [to],
    workers: [holder('a', 1, [write('x'), write('y')]), holder('b', 2, [advance, write('x')])],
    gate: 'all',
    faults: faults(2, { 'fail-before': 1, 'fail-after': 1, ...crash, late: 1 }),
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
    faults: faults(1, { again: 1, late: 1, ...crash }),
  },
  {
    name: 'two jobs and two scopes',
    destinations: [to],
    workers: [
      { ...holder('a', 1, [write('x')]), jobId: 'j' },
      { ...holder('b', 2, [write('x')]), jobId: 'j', scope: 's' },
      { ...holder('c', 3, [write('x')]), jobId: 'k' },
    ],
    faults: faults(2, { again: 2, ...crash }),
  },
]
