import { describe, expect, it } from 'vitest'
import { jsonCodec, type WriteIntent } from 'writefence'
import { intent } from '../../src/conformance/fence-destination.ts'
import { runnable } from '../../src/guard/apply.ts'
import type { Fence, JobView, Operation, Unit } from '../../src/guard/fence-store.ts'
import { checkIntent } from '../../src/guard/intent.ts'
import {
  advanceUnit,
  reopenUnit,
  reserveUnit,
  resolveUnit,
  settleUnit,
  writeUnit,
} from '../../src/guard/units.ts'

const job = { scope: '', jobId: 'job' }
const held: Fence = { generation: 5, holder: { kind: 'lease', leaseId: 'a' }, sealed: false }
const unbound: Fence = { generation: 5, holder: { kind: 'unbound' }, sealed: false }
const known = { generation: 5, fingerprint: undefined, attemptId: 't' }
const inFlight: Operation = { ...known, status: 'in_flight', overdue: false, remainingMs: 7 }
const unknown: Operation = { ...known, status: 'unknown' }
const attempt = { attemptId: 'u', deadlineMs: 10, rerun: false }
const none = { kind: 'none' }

const writing = (write: WriteIntent) => {
  const order = checkIntent(write)
  return writeUnit(
    order,
    runnable('sync', order, () => 1, jsonCodec),
  )
}
const reserving = (write: WriteIntent, rerun = false) =>
  reserveUnit({ ...checkIntent(write), operationId: 'x' }, { ...attempt, rerun })
const advancing = (write: WriteIntent, seal = false) => advanceUnit(job, write.token, seal)
const settling = (attemptId: string) =>
  settleUnit({ job, operationId: 'x', attemptId }, { status: 'not_applied' })
const reopening = () => reopenUnit(job)
const resolving = () => resolveUnit(job, 'x', { status: 'not_applied' })

function view(fence: Fence | undefined, operation?: Operation): JobView {
  return { fence, operation, pending: {}, census: [] }
}

/** What a unit has its engine do; made within the tests, as are the units. */
function stepOf<A, R>(unit: Unit<unknown, 'sync', A, R>, seen: JobView) {
  const { fence, action } = unit.step(seen)
  return { fence, action }
}

describe('what a job may be read and changed beside', () => {
  type Any = Pick<Unit<unknown, 'sync', unknown, unknown>, 'insideTransaction' | 'census'>
  it.each<[string, () => Any, 'wait' | 'refuse', census: true | undefined]>([
    ['a write waits for a transaction to end', () => writing(intent(5, 'x')), 'wait', undefined],
    ['a settlement too: its effect has been', () => settling('t'), 'wait', undefined],
    ['a reservation would outlive it', () => reserving(intent(5, 'x')), 'refuse', undefined],
    ['an advance too, and counts', () => advancing(intent(5)), 'refuse', true],
    ['a seal too, and counts', () => advancing(intent(5), true), 'refuse', true],
    ['a reopening too, and counts', reopening, 'refuse', true],
    ['a resolution too', resolving, 'refuse', undefined],
  ])('%s', (_, make, insideTransaction, census) => {
    const unit = make()
    expect(unit).toMatchObject({ insideTransaction })
    expect(unit.census).toBe(census)
  })
})

describe('a unit that has nothing to change puts nothing', () => {
  it.each<[string, () => ReturnType<typeof stepOf>]>([
    ['a stale write', () => stepOf(writing(intent(4, 'x')), view(held))],
    ['a stale reservation', () => stepOf(reserving(intent(4, 'x')), view(held))],
    ['a stale advance', () => stepOf(advancing(intent(4)), view(held))],
    ['an advance of the holder', () => stepOf(advancing(intent(5)), view(held))],
    ['a settlement that comes too late', () => stepOf(settling('u'), view(held, inFlight))],
    ['a resolution of what runs', () => stepOf(resolving(), view(held, inFlight))],
    ['a reopening of what was never fenced', () => stepOf(reopening(), view(undefined))],
  ])('%s', (_, step) => {
    expect(step()).toEqual({ fence: undefined, action: none })
  })

  it.each<[string, Fence | undefined, status: string]>([
    ['no fence', undefined, 'open'],
    ['an open fence that nobody holds', unbound, 'open'],
    ['the last generation', { ...held, generation: 999_999_999_999_999 }, 'exhausted'],
  ])('%s is not reopened', (_, fence, status) => {
    const { answer, action, ...step } = reopening().step(view(fence))
    expect(answer.status).toBe(status)
    expect(action).toEqual(none)
    expect(step.fence).toEqual(fence)
  })
})

describe('a unit that has the fence to change puts the fence, and no record', () => {
  it.each<[string, () => ReturnType<typeof stepOf>, Fence]>([
    ['an advance', () => stepOf(advancing(intent(6)), view(held)), { ...held, generation: 6 }],
    ['a seal', () => stepOf(advancing(intent(5), true), view(held)), { ...held, sealed: true }],
    [
      'a reopening',
      () => stepOf(reopening(), view({ ...held, sealed: true })),
      { ...unbound, generation: 6 },
    ],
    [
      'a write that is refused for what has come before it',
      () => stepOf(writing(intent(6, 'x')), view(held, unknown)),
      { ...held, generation: 6 },
    ],
  ])('%s', (_, step, fence) => {
    expect(step()).toEqual({ fence, action: none })
  })
})

describe('the ruling on a write', () => {
  const apply = { kind: 'apply', generation: 5, fingerprint: undefined }

  it('of the holder leaves the fence as it stands', () => {
    expect(writing(intent(5, 'x')).step(view(held))).toEqual({
      answer: {
        verdict: { status: 'apply', highestGeneration: 5 },
        recorded: undefined,
        tookOverFrom: undefined,
        unknownAttempt: undefined,
        earlier: undefined,
      },
      fence: undefined,
      action: apply,
    })
  })

  it('whose outcome is not known names the attempt that is to be found out about', () => {
    const { answer } = reserving(intent(6, 'x')).step(view(held, unknown))
    expect(answer).toMatchObject({ unknownAttempt: 't', tookOverFrom: 5, earlier: undefined })
  })

  it('that reruns beside an overdue attempt keeps the generation that holds others back', () => {
    const overdue: Operation = { ...known, status: 'in_flight', overdue: true, remainingMs: 0 }
    const { answer, action } = reserving(intent(6, 'x'), true).step(view(held, overdue))
    expect(answer).toMatchObject({ verdict: { status: 'apply' }, earlier: 'overdue' })
    expect(action).toMatchObject({ operation: { generation: 5, attemptId: 'u' } })
  })

  it('that reruns after an attempt of unknown outcome knows of it, holding back as its own', () => {
    const { answer, action } = reserving(intent(6, 'x'), true).step(view(held, unknown))
    expect(answer).toMatchObject({ verdict: { status: 'apply' }, earlier: 'unknown' })
    expect(action).toMatchObject({ operation: { generation: 6, attemptId: 'u' } })
  })
})
