import { describe, expect, it } from 'vitest'
import type { Operation } from '../../src/guard/fence-store.ts'
import { type Ending, resolve, settle } from '../../src/guard/settle.ts'

const known = { generation: 3, fingerprint: 'f', attemptId: 't' }
const inFlight = { ...known, status: 'in_flight', overdue: false, remainingMs: 7 } as const
const overdue = { ...known, status: 'in_flight', overdue: true, remainingMs: 0 } as const
const unknown = { ...known, status: 'unknown' } as const
const applied = { generation: 3, fingerprint: 'f', status: 'applied', result: '1' } as const

const endings: [Ending, action: unknown][] = [
  [
    { status: 'applied', result: '2' },
    {
      kind: 'put',
      operation: { status: 'applied', generation: 3, fingerprint: 'f', result: '2' },
    },
  ],
  [
    { status: 'applied', result: '2', generation: 4 },
    {
      kind: 'put',
      operation: { status: 'applied', generation: 4, fingerprint: 'f', result: '2' },
    },
  ],
  [
    { status: 'overdue' },
    {
      kind: 'put',
      operation: { ...known, status: 'in_flight', deadlineMs: 0 },
    },
  ],
  [
    { status: 'unknown' },
    {
      kind: 'put',
      operation: { status: 'unknown', generation: 3, fingerprint: 'f', attemptId: 't' },
    },
  ],
  [{ status: 'not_applied' }, { kind: 'delete' }],
]

describe('I6: settling', () => {
  it.each<[string, Operation, late: boolean]>([
    ['in flight', inFlight, false],
    ['overdue', overdue, true],
    ['unknown', unknown, true],
  ])('what is %s is ended by the attempt that began it', (_, operation, late) => {
    for (const [ending, action] of endings) {
      expect(settle(operation, 't', ending)).toEqual({ settled: true, late, action })
    }
  })

  it.each<[string, Operation | undefined, attemptId: string]>([
    ['in flight, by another attempt', inFlight, 'u'],
    ['overdue, by another attempt', overdue, 'u'],
    ['unknown, by another attempt', unknown, 'u'],
    ['applied', applied, 't'],
    ['applied, though the engine kept its attempt id', { ...applied, ...known }, 't'],
    ['not known', undefined, 't'],
  ])('what is %s stays as it is', (_, operation, attemptId) => {
    for (const [ending] of endings) {
      expect(settle(operation, attemptId, ending)).toEqual({ settled: false })
    }
  })
})

describe('resolving', () => {
  it.each<[string, Operation]>([
    ['overdue', overdue],
    ['unknown', unknown],
  ])('ends what is %s, whose attempt it was', (_, operation) => {
    for (const [ending, action] of endings) {
      if (ending.status === 'unknown' || ending.status === 'overdue') continue
      expect(resolve(operation, ending)).toEqual({ status: 'resolved', action })
    }
  })

  it('leaves alone what runs within its deadline', () => {
    const answer = { status: 'in_flight', generation: 3, remainingMs: 7 }
    expect(resolve(inFlight, { status: 'not_applied' })).toEqual(answer)
  })

  it('leaves alone what is applied, and what is not known', () => {
    const none = { kind: 'none' }
    const ending = { status: 'applied', result: '2' } as const
    expect(resolve(applied, ending)).toEqual({ status: 'already_applied', action: none })
    expect(resolve(undefined, ending)).toEqual({ status: 'unknown_operation', action: none })
  })
})
