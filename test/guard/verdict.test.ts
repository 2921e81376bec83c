import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Fence, Holder, JobView, Operation } from '../../src/guard/fence-store.ts'
import { admit, decide, type Verdict, type WriteClaim } from '../../src/guard/verdict.ts'
import type { FencingToken } from '../../src/token.ts'

const GENERATIONS = [1, 2, 3]
const HOLDERS: Holder[] = [
  { kind: 'none' },
  { kind: 'unbound' },
  { kind: 'lease', leaseId: 'a' },
  { kind: 'lease', leaseId: 'b' },
]

function* fences(): Generator<Fence | undefined> {
  yield undefined
  for (const generation of GENERATIONS)
    for (const holder of HOLDERS)
      for (const sealed of [false, true]) yield { generation, holder, sealed }
}

function* operations(): Generator<Operation | undefined> {
  yield undefined
  for (const fingerprint of [undefined, 'f']) {
    const known = { generation: 1, fingerprint, attemptId: 't' }
    yield { ...known, status: 'in_flight', overdue: false, remainingMs: 7 }
    yield { ...known, status: 'in_flight', overdue: true, remainingMs: 0 }
    yield { ...known, status: 'unknown' }
    yield { generation: 1, fingerprint, status: 'applied', result: undefined }
  }
}

function* pendings(): Generator<JobView['pending']> {
  for (const inFlight of [0, ...GENERATIONS])
    for (const overdue of [0, ...GENERATIONS])
      yield {
        ...(inFlight > 0 && { inFlight: { generation: inFlight, remainingMs: 9 } }),
        ...(overdue > 0 && { overdue: { generation: overdue, remainingMs: 0 } }),
      }
}

function* tokens(): Generator<FencingToken> {
  for (const generation of GENERATIONS)
    for (const leaseId of [undefined, 'a']) yield { jobId: 'job', generation, leaseId }
}

function* writes(): Generator<WriteClaim> {
  for (const token of tokens())
    for (const operationId of [undefined, 'x'])
      for (const fingerprint of [undefined, 'f'])
        for (const takes of [undefined, 't', 'u'])
          for (const afterOverdue of [undefined, 'proceed'] as const)
            yield { token, operationId, fingerprint, takes, afterOverdue }
}

function* cases(): Generator<[JobView, WriteClaim]> {
  const allWrites = [...writes()]
  for (const fence of fences())
    for (const operation of operations())
      for (const pending of pendings())
        for (const write of allWrites) {
          // A write that names no operation has no record of its own.
          if (operation !== undefined && write.operationId === undefined) continue
          yield [{ fence, operation, pending, census: undefined }, write]
        }
}

type Rule = (view: JobView, write: WriteClaim) => boolean

const same = (holder: Holder, leaseId: string | undefined) =>
  holder.kind === 'unbound' ||
  (holder.kind === 'none' ? leaseId === undefined : holder.leaseId === leaseId)

/** Rule 11 as a table, written from the text of the design and not from the code. */
const RULES: [code: string, holds: Rule][] = [
  ['stale', ({ fence }, { token }) => (fence?.generation ?? 0) > token.generation],
  [
    'conflict',
    ({ fence }, { token }) =>
      fence?.generation === token.generation && !same(fence.holder, token.leaseId),
  ],
  ['mismatch', ({ operation: o }, w) => o !== undefined && o.fingerprint !== w.fingerprint],
  ['replay', ({ operation }) => operation?.status === 'applied'],
  ['in_flight', ({ operation: o }) => o?.status === 'in_flight' && !o.overdue],
  [
    'outcome_unknown',
    ({ operation: o }, { takes }) =>
      o !== undefined && o.status !== 'applied' && takes !== o.attemptId,
  ],
  ['sealed', ({ fence }) => fence?.sealed === true],
  [
    'outcome_unknown',
    ({ pending }, { token, afterOverdue }) =>
      afterOverdue === undefined && (pending.overdue?.generation ?? Infinity) < token.generation,
  ],
  [
    'in_flight',
    ({ pending }, { token }) => (pending.inFlight?.generation ?? Infinity) < token.generation,
  ],
  ['apply', () => true],
]

function expected(view: JobView, write: WriteClaim): Verdict {
  const [code = ''] = RULES.find(([, holds]) => holds(view, write)) ?? []
  const { operation: o, fence, pending } = view
  const highestGeneration = Math.max(fence?.generation ?? 0, write.token.generation)
  if (code === 'apply') return { status: 'apply', highestGeneration }
  if (code === 'replay') {
    return { status: 'replay', highestGeneration, appliedGeneration: o?.generation ?? 0 }
  }
  const own = o?.status === 'in_flight' && !o.overdue ? o.remainingMs : undefined
  const mine = o?.status === 'applied' ? o.fingerprint === write.fingerprint : undefined
  return {
    status: 'refuse',
    code: code as 'stale',
    highestGeneration,
    operationApplied: write.operationId === undefined ? undefined : o === undefined ? false : mine,
    retryAfterMs: code === 'in_flight' ? (own ?? pending.inFlight?.remainingMs) : undefined,
  }
}

/** The members of every kind of verdict, compared without the cost of an assertion per case. */
const equal = (a: Record<string, unknown>, b: Record<string, unknown>) =>
  [
    'status',
    'code',
    'highestGeneration',
    'operationApplied',
    'retryAfterMs',
    'appliedGeneration',
  ].every((member) => a[member] === b[member])

describe('the verdict, over every state and write of a small world', () => {
  it('is the first line of rule 11 that holds', () => {
    const wrong: unknown[] = []
    const said = new Set<string>()
    for (const [view, write] of cases()) {
      const verdict = decide(view, write)
      said.add(verdict.status === 'refuse' ? verdict.code : verdict.status)
      if (!equal(verdict, expected(view, write))) wrong.push({ view, write, verdict })
    }
    expect(wrong.slice(0, 3)).toEqual([])
    expect(said).toEqual(new Set(RULES.map(([code]) => code)))
  })

  it('I2: applies only under the fence, unsealed, with nothing older under way', () => {
    const wrong: unknown[] = []
    for (const [view, write] of cases()) {
      if (decide(view, write).status !== 'apply') continue
      const { generation } = write.token
      const older = [view.pending.inFlight, view.pending.overdue].filter(
        (each) => each !== undefined && each.generation < generation,
      )
      const heldBack = older.length > 0 && write.afterOverdue === undefined
      const { fence } = view
      if (fence?.sealed || (fence?.generation ?? 0) > generation || heldBack) {
        wrong.push({ view, write })
      }
    }
    expect(wrong.slice(0, 3)).toEqual([])
  })

  it('I10: no reading of the clock turns a refusal into an acceptance', () => {
    const wrong: unknown[] = []
    for (const [view, write] of cases()) {
      if (write.takes !== undefined || write.afterOverdue !== undefined) continue
      const accepted = decide(view, write).status === 'apply'
      for (const other of otherReadings(view)) {
        if ((decide(other, write).status === 'apply') !== accepted) wrong.push({ view, write })
      }
    }
    expect(wrong.slice(0, 3)).toEqual([])
  })
})

/** The same state as other clocks would show it: in flight is overdue, or the reverse. */
function* otherReadings({ fence, operation, pending, census }: JobView): Generator<JobView> {
  const generations = [pending.inFlight, pending.overdue].flatMap((each) => each?.generation ?? [])
  const flipped =
    operation?.status === 'in_flight'
      ? { ...operation, overdue: !operation.overdue, remainingMs: operation.overdue ? 7 : 0 }
      : operation
  const lowest = Math.min(...generations)
  const all = { generation: lowest, remainingMs: 3 }
  for (const own of [operation, flipped]) {
    yield { fence, operation: own, pending, census }
    if (generations.length === 0) continue
    yield { fence, operation: own, pending: { inFlight: all }, census }
    yield { fence, operation: own, pending: { overdue: { ...all, remainingMs: 0 } }, census }
  }
}

describe('admission', () => {
  it('I1: never lowers a fence, and changes its holder at one generation only if unbound', () => {
    for (const fence of fences()) {
      for (const token of tokens()) {
        const { admitted, fence: after } = admit(fence, token)
        expect(after.generation).toBeGreaterThanOrEqual(fence?.generation ?? 0)
        if (after.generation === fence?.generation && fence.holder.kind !== 'unbound') {
          expect(after.holder).toEqual(fence.holder)
        }
        if (fence?.sealed) expect(after.sealed).toBe(true)
        if (admitted) {
          expect(after.generation).toBe(token.generation)
          expect(same(after.holder, token.leaseId)).toBe(true)
          expect(after.holder.kind).not.toBe('unbound')
        } else expect(after).toBe(fence)
      }
    }
  })

  it('says whether the fence has moved', () => {
    for (const fence of fences()) {
      for (const token of tokens()) {
        const admission = admit(fence, token)
        if (!admission.admitted) continue
        expect(admission.moved).toBe(
          JSON.stringify(admission.fence) !== JSON.stringify(fence ?? null),
        )
      }
    }
  })
})

describe('the verdict, over any generations and ids', () => {
  const generation = fc.integer({ min: 1, max: 999_999_999_999_999 })
  const id = fc.string({ unit: 'binary', minLength: 1, maxLength: 4 })
  const holder = fc.oneof(
    fc.constantFrom<Holder>({ kind: 'none' }, { kind: 'unbound' }),
    id.map((leaseId): Holder => ({ kind: 'lease', leaseId })),
  )
  const fence = fc.record({ generation, holder, sealed: fc.boolean() })
  const token = fc.record({
    jobId: fc.constant('job'),
    generation,
    leaseId: fc.option(id, { nil: undefined }),
  })

  it('stale is what is below the fence, conflict what equals it under another lease', () => {
    fc.assert(
      fc.property(fence, token, fc.boolean(), (before, drawn, level) => {
        const given = level ? { ...drawn, generation: before.generation } : drawn
        const view = { fence: before, operation: undefined, pending: {}, census: undefined }
        expect(decide(view, { token: given })).toEqual(expected(view, { token: given }))
      }),
    )
  })
})
