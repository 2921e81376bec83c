/** Worlds from the claim to the end of the lease. */

import type { Plan } from './plan.ts'
import {
  advance,
  claim,
  complete,
  crash,
  faults,
  leaseExpires,
  network,
  release,
  renew,
  seal,
  to,
  write,
} from './world-parts.ts'

const setBack = { name: 'clock set back', moves: { leases: -3_600_000 }, times: 1 }
const setForward = {
  name: 'clock set forward',
  moves: { leases: 3_600_000, [to]: 60_001 },
  times: 1,
}

export const leaseWorlds: readonly Plan[] = [
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
    short: { timeAtMost: 2 },
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
    name: 'a lease service that is put back to its backup',
    destinations: [to],
    workers: [
      { name: 'a', steps: [claim, write('x'), renew] },
      { name: 'b', steps: [claim, write('x')] },
      { name: 'operator', steps: [{ verb: 'raise', atLeast: 2 }] },
    ],
    foreign: true,
    time: [leaseExpires],
    faults: faults(2, { restore: 1, late: 1 }),
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
