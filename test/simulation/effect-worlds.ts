/** Worlds of effects elsewhere: reserved, under way, settled, overdue, taken over. */

import type { Plan } from './plan.ts'
import { advance, crash, effect, faults, holder, overdue, seal, to, write } from './world-parts.ts'

const endings = { 'land-silent': 1, 'land-broken': 1, break: 1, refuse: 1 }

export const effectWorlds: readonly Plan[] = [
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
    name: 'a rerun that does not take place, after an attempt that may have',
    destinations: [to],
    workers: [holder('a', 1, [effect('x'), effect('x')]), holder('b', 2, [effect('x')])],
    effects: { onUnknown: 'rerun' },
    deduplicates: true,
    gate: 'later',
    faults: faults(2, endings),
    short: { faults: faults(2, endings) },
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
    name: 'effects and writes without an id',
    destinations: [to],
    workers: [
      holder('a', 1, [{ verb: 'effect', to }]),
      holder('b', 2, [{ verb: 'write', to }, effect('x')]),
    ],
    gate: 'later',
    time: [overdue],
    faults: faults(2, { ...endings, ...crash, again: 1 }),
  },
  {
    name: 'overdue effects that are not waited for',
    destinations: [to],
    workers: [holder('a', 1, [effect('x')]), holder('b', 2, [effect('y'), effect('x')])],
    effects: { afterOverdue: 'proceed' },
    unordered: true,
    gate: 'later',
    time: [overdue],
    faults: faults(1, { ...endings, ...crash, late: 1 }),
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
