import { describe, expect, it } from 'vitest'
import type { JobView, Operation } from '../../src/guard/fence-store.ts'
import { decide } from '../../src/guard/verdict.ts'
import { tokenFor } from '../../src/http/identify.ts'
import {
  FENCING_TOKEN,
  FENCING_VERDICT,
  IDEMPOTENCY_KEY,
  IDEMPOTENT_REPLAYED,
  parseFencingToken,
  parseFencingVerdict,
  parseIdempotencyKey,
} from '../../src/wire/headers.ts'
import { blocks, section, spans, table } from './markdown.ts'

const PROTOCOL = 'docs/protocol.md'

describe('the table of verdicts', () => {
  const rows = table(PROTOCOL, '### The verdict')
  const write = {
    token: { jobId: 'job', generation: 7, leaseId: 'mine' },
    operationId: 'op',
    fingerprint: 'mine',
  }
  const known = { generation: 7, fingerprint: 'mine', attemptId: 'attempt' }
  const flight = { ...known, status: 'in_flight', overdue: false, remainingMs: 9 } as const
  const applied = { status: 'applied', generation: 7, fingerprint: 'mine', result: '1' } as const
  const older = { generation: 6, remainingMs: 9 }
  const fence = (generation: number, leaseId: string, sealed = true) =>
    ({ generation, holder: { kind: 'lease', leaseId }, sealed }) as const

  // Of each row all the conditions below it hold as well: it is the first that decides.
  const view = (at: ReturnType<typeof fence>, operation?: Operation): JobView => ({
    fence: at,
    operation,
    pending: { inFlight: older, overdue: older },
    census: undefined,
  })
  const states: readonly (readonly [row: number, JobView])[] = [
    [3, view(fence(8, 'other'), { ...applied, fingerprint: 'other' })],
    [4, view(fence(7, 'other'), { ...applied, fingerprint: 'other' })],
    [5, view(fence(7, 'mine'), { ...applied, fingerprint: 'other' })],
    [5, view(fence(7, 'mine'), { ...flight, fingerprint: 'other' })],
    [6, view(fence(7, 'mine'), applied)],
    [7, view(fence(7, 'mine'), flight)],
    [8, view(fence(7, 'mine'), { ...flight, overdue: true, remainingMs: 0 })],
    [8, view(fence(7, 'mine'), { ...known, status: 'unknown' })],
    [9, view(fence(7, 'mine'))],
    [10, view(fence(7, 'mine', false))],
    [11, { ...view(fence(7, 'mine', false)), pending: { inFlight: older } }],
    [12, { ...view(fence(7, 'mine', false)), pending: {} }],
  ]

  it('has twelve rows, in order', () => {
    expect(rows.map(([number]) => Number(number))).toEqual(rows.map((_, index) => index + 1))
    expect(rows).toHaveLength(12)
  })

  it.each(states)('row %i decides before those below it, as the code does', (row, state) => {
    const verdict = decide(state, write)
    const { status } = verdict
    const answer = { apply: 'apply', replay: 'the recorded answer again', refuse: '' }[status]
    const says = status === 'refuse' ? `\`${verdict.code}\`` : answer
    expect(rows[row - 1]?.[2]).toBe(says)
  })

  it('begins with the refusals that need no state', () => {
    const refusals = [
      () => parseFencingToken('05'),
      () => parseIdempotencyKey('"'),
      () => tokenFor('this', { generation: 7, jobId: 'that' }),
    ]
    const codes = [rows[0], rows[1]].flatMap((row) => spans(row?.[2]))
    expect(codes).toHaveLength(refusals.length)
    for (const [index, refused] of refusals.entries()) {
      expect(refused).toThrow(expect.objectContaining({ code: codes[index] }))
    }
  })
})

describe('the headers', () => {
  it('are spelled as the code spells them', () => {
    const lines = blocks(section(PROTOCOL, '## On the wire'), '')
      .flatMap((block) => block.trim().split('\n'))
      .map((line) => line.split(': ') as [string, string])
    const [, key, verdict] = lines.map(([, value]) => value)
    expect(lines.map(([name]) => name)).toEqual([FENCING_TOKEN, IDEMPOTENCY_KEY, FENCING_VERDICT])
    expect(parseIdempotencyKey(key ?? '')).toBe('charge-2026-11')
    expect(parseFencingVerdict(verdict)).toEqual({ word: 'applied', highestGeneration: 7 })
    expect(section(PROTOCOL, '## On the wire')).toContain(`\`${IDEMPOTENT_REPLAYED}: true\``)
  })

  it.each(['05', '5.0', '5;job="a";job="b"'])('%s is malformed, as the page says', (text) => {
    expect(() => parseFencingToken(text)).toThrow(
      expect.objectContaining({ code: 'token_malformed' }),
    )
  })
})
