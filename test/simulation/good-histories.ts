import type { HistoryEvent } from './history.ts'
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

/** Histories with nothing wrong in them, among them what a careless checker would call wrong. */
export const good: Readonly<Record<string, readonly HistoryEvent[]>> = {
  'nothing at all': [],
  'a write, its replay under the next generation, and a stale one': [
    ...write('a', 1, { ...applied(1), result: { n: 1 } }),
    effect('a', 1),
    ...write('b', 2, {
      ...applied(2),
      outcome: 'replayed',
      appliedGeneration: 1,
      result: { n: 1 },
    }),
    ...write('c', 1, { ...stale(2), operationApplied: true }),
  ],
  'an older write that was sent before the fence moved, and answered after': [
    write('a', 1, applied(1))[0],
    effect('a', 1),
    ...advance('b', 2),
    write('a', 1, applied(1))[1],
  ],
  'an effect after an answer that proves nothing': [
    ...write('a', 1, { outcome: 'unknown' }),
    ...write('b', 1, { outcome: 'refused', code: 'outcome_unknown', highestGeneration: 1 }),
    effect('a', 1),
  ],
  'an effect of a call that was never answered': [write('a', 1, applied(1))[0], effect('a', 1)],
  'an effect elsewhere that an earlier attempt had on its way': [
    ...call('a', { verb: 'effect', generation: 1, operationId: 'op' }, { outcome: 'unknown' }),
    ...call('b', { verb: 'effect', generation: 2, operationId: 'op' }, applied(2)),
    effect('a', 1),
  ],
  'an effect that names no call': [
    ...write('a', 1, stale(2)),
    ...write('b', 2, applied(2)),
    { event: 'applied', jobId, generation: 2, operationId: 'op' },
  ],
  'two writes without an operation id': [
    ...call('a', { verb: 'write', generation: 1 }, applied(1)),
    ...call('b', { verb: 'write', generation: 1 }, applied(1)),
    { event: 'applied', jobId, generation: 1, call: 'a' },
    { event: 'applied', jobId, generation: 1, call: 'b' },
  ],
  'another job, scope or destination': [
    ...advance('a', 2),
    ...call('b', { verb: 'write', scope: 's', generation: 1, operationId: 'op' }, applied(1)),
    { event: 'applied', jobId, scope: 's', generation: 1, operationId: 'op' },
    ...call('c', { verb: 'write', destination: 'd', generation: 1, operationId: 'op' }, applied(1)),
    { event: 'applied', jobId, destination: 'd', generation: 1, operationId: 'op' },
  ],
  'a write after a seal that was reopened': [
    ...seal('a', 1),
    ...call('b', { verb: 'reopen' }, { outcome: 'done', highestGeneration: 2 }),
    ...write('c', 2, applied(2)),
    effect('c', 2),
  ],
  'a claim that is repeated, lost, and made by the next': [
    ...claim('a', 1, 'x'),
    ...claim('b', 1, 'x'),
    ...call('c', { verb: 'raise', atLeast: 4 }, { outcome: 'done' }),
    ...claim('d', 5, 'y'),
    ...call('e', { verb: 'renew', generation: 1, leaseId: 'x' }, { outcome: 'lost' }),
    ...call('f', { verb: 'complete', generation: 5, leaseId: 'y' }, { outcome: 'completed' }),
    ...call('g', { verb: 'reopen_lease' }, { outcome: 'done' }),
    ...claim('h', 6, 'z'),
  ],
  'a claim that is repeated after raising to what it has': [
    ...claim('a', 1, 'x'),
    ...call('b', { verb: 'raise', atLeast: 1 }, { outcome: 'done' }),
    ...claim('c', 1, 'x'),
  ],
  'a lease that is still there after a restore, and is raised to': [
    ...claim('a', 1, 'x'),
    { event: 'restored' },
    ...call('b', { verb: 'raise', atLeast: 1 }, { outcome: 'done' }),
    ...claim('c', 1, 'x'),
  ],
  'a seal and a completion that came before the reopening that was asked for first': [
    { event: 'invoke', call: 'a', verb: 'reopen', jobId },
    { event: 'invoke', call: 'b', verb: 'reopen_lease', jobId },
    ...seal('c', 1),
    ...claim('d', 1, 'l1'),
    ...call('e', { verb: 'complete', generation: 1, leaseId: 'l1' }, { outcome: 'completed' }),
    { event: 'answer', call: 'a', outcome: 'done' },
    { event: 'answer', call: 'b', outcome: 'done' },
    ...write('f', 2, applied(2)),
    effect('f', 2),
    ...claim('g', 2, 'l2'),
  ],
  'generations that a restored lease service grants again': [
    ...claim('a', 1, 'x'),
    { event: 'restored' },
    ...claim('b', 1, 'y'),
  ],
}
