import type { HistoryEvent } from './history.ts'
import type { Rule } from './history-checker.ts'
import {
  advance,
  applied,
  call,
  claim,
  effect,
  jobId,
  seal,
  stale,
  write,
} from './planted-calls.ts'

/** One history for each way to break each rule: the last event but what `finish` finds is wrong. */
export const bad: readonly (readonly [Rule, string, readonly HistoryEvent[]])[] = [
  [
    'generation_fell',
    'an older effect after a newer one',
    [
      ...write('a', 2, { outcome: 'unknown' }),
      ...call('b', { verb: 'effect', generation: 1, operationId: 'other' }, { outcome: 'unknown' }),
      effect('a', 2),
      effect('b', 1, 'other'),
    ],
  ],
  [
    'applied_twice',
    'two effects of one operation',
    [
      ...write('a', 1, applied(1)),
      effect('a', 1),
      ...write('b', 1, { outcome: 'unknown' }),
      effect('b', 1),
    ],
  ],
  ['acknowledged_lost', 'applied, and no effect', write('a', 1, applied(1))],
  [
    'acknowledged_lost',
    'replayed, and no effect',
    write('a', 1, { ...applied(1), outcome: 'replayed' }),
  ],
  [
    'acknowledged_lost',
    'without an operation id',
    call('a', { verb: 'write', generation: 1 }, applied(1)),
  ],
  ['refused_but_applied', 'by the call', [...write('a', 1, stale(2)), effect('a', 1)]],
  [
    'refused_but_applied',
    'a failed effect that left a trace',
    [...write('a', 1, { outcome: 'failed' }), effect('a', 1)],
  ],
  [
    'refused_but_applied',
    'by the operation and generation',
    [
      ...write('a', 1, stale(2)),
      ...write('b', 2, { outcome: 'unknown' }),
      { event: 'applied', jobId, generation: 1, operationId: 'op' },
    ],
  ],
  ['effect_unexplained', 'an operation that nobody asked for', [effect('a', 1)]],
  [
    'effect_unexplained',
    'a call that nobody made',
    [...write('a', 1, { outcome: 'unknown' }), effect('b', 1)],
  ],
  [
    'effect_unexplained',
    'a generation that nobody used',
    [
      ...write('a', 1, { outcome: 'unknown' }),
      { event: 'applied', jobId, generation: 2, operationId: 'op' },
    ],
  ],
  [
    'replay_differs',
    'in its result',
    [
      ...write('a', 1, { ...applied(1), result: 1 }),
      ...write('b', 1, { ...applied(1), outcome: 'replayed', result: 2 }),
      effect('a', 1),
    ],
  ],
  [
    'replay_differs',
    'in the generation of the effect',
    [
      ...write('a', 1, applied(1)),
      ...write('b', 2, { ...applied(2), outcome: 'replayed' }),
      effect('a', 1),
    ],
  ],
  [
    'replay_differs',
    'in the generation of the effect, between answers',
    [
      ...call('a', { verb: 'effect', generation: 1, operationId: 'op' }, applied(1)),
      ...call(
        'b',
        { verb: 'effect', generation: 2, operationId: 'op' },
        { ...applied(2), outcome: 'replayed' },
      ),
      effect('a', 1),
    ],
  ],
  [
    'fence_fell',
    'as it was told',
    [...advance('a', 2), ...write('b', 1, { ...stale(1), code: 'conflict' })],
  ],
  ['fence_fell', 'as it was seen', [...advance('a', 2), { event: 'fence', jobId, generation: 1 }]],
  [
    'fence_fell',
    'after a refusal that let the token in',
    [
      ...write('a', 2, { outcome: 'refused', code: 'sealed' }),
      { event: 'fence', jobId, generation: 1 },
    ],
  ],
  [
    'stale_accepted',
    'by an advance',
    [...advance('a', 2), ...call('b', { verb: 'advance', generation: 1 }, { outcome: 'done' })],
  ],
  [
    'stale_accepted',
    'a replay',
    [
      ...write('a', 1, applied(1)),
      effect('a', 1),
      ...advance('b', 2),
      ...write('c', 1, { outcome: 'replayed' }),
    ],
  ],
  [
    'stale_accepted',
    'after a write that failed',
    [
      ...write('a', 2, { outcome: 'failed' }),
      ...call('b', { verb: 'write', generation: 1 }, { outcome: 'failed' }),
    ],
  ],
  [
    'stale_accepted',
    'after a reopening',
    [
      ...call('a', { verb: 'reopen' }, { outcome: 'done', highestGeneration: 2 }),
      ...call('b', { verb: 'seal', generation: 1 }, { outcome: 'done' }),
    ],
  ],
  [
    'sealed_accepted',
    'a write after a seal',
    [...seal('a', 1), ...write('b', 2, applied(2)), effect('b', 2)],
  ],
  ['two_holders', 'at the destination', [...advance('a', 1, 'x'), ...advance('b', 1, 'y')]],
  [
    'two_holders',
    'in the effects',
    [
      ...advance('a', 1, 'x'),
      ...call('b', { verb: 'write', generation: 1, leaseId: 'y' }, { outcome: 'unknown' }),
      { event: 'applied', jobId, generation: 1, leaseId: 'y', call: 'b' },
    ],
  ],
  ['two_holders', 'at the lease service', lateGrant(1, 'y')],
  ['untrue_refusal', 'stale, and the newest', write('a', 2, stale(2))],
  [
    'untrue_refusal',
    'told that nothing took place',
    [
      ...write('a', 1, applied(1)),
      effect('a', 1),
      ...write('b', 1, { outcome: 'refused', code: 'conflict', operationApplied: false }),
    ],
  ],
  [
    'untrue_refusal',
    'told that it took place',
    write('a', 1, { ...stale(2), operationApplied: true }),
  ],
  ['lease_generation_reused', 'after it', [...claim('a', 2, 'x'), ...claim('b', 1, 'y')]],
  [
    'lease_generation_reused',
    'by its own lease',
    [...claim('a', 1, 'x'), ...claim('b', 2, 'y'), ...claim('c', 1, 'x')],
  ],
  [
    'lease_generation_reused',
    'below what it was raised to',
    [...call('a', { verb: 'raise', atLeast: 4 }, { outcome: 'done' }), ...claim('b', 4, 'x')],
  ],
  ...(['renewed', 'completed', 'released'] as const).map(
    (outcome) => ['superseded_lease_kept', outcome, supersededBy(outcome)] as const,
  ),
  [
    'completed_job_claimed',
    'without a reopening',
    [
      ...claim('a', 1, 'x'),
      ...call('b', { verb: 'complete', generation: 1, leaseId: 'x' }, { outcome: 'completed' }),
      ...claim('c', 2, 'y'),
    ],
  ],
]

/** A grant that was asked for before another one was answered, and answered after it. */
function lateGrant(generation: number, leaseId: string): HistoryEvent[] {
  const [asked, told] = claim('a', generation, leaseId)
  return [asked, ...claim('b', 1, 'x'), told]
}

function supersededBy(outcome: 'renewed' | 'completed' | 'released'): HistoryEvent[] {
  const verb = ({ renewed: 'renew', completed: 'complete', released: 'release' } as const)[outcome]
  const lease = { verb, generation: 1, leaseId: 'x' }
  return [...claim('a', 1, 'x'), ...claim('b', 2, 'y'), ...call('c', lease, { outcome })]
}
