import { describe, expect, it } from 'vitest'
import { isRetryable, type VerdictCode } from 'writefence'
import { verdictCodes } from '../../src/errors.ts'
import type { Fence, JobView, Operation } from '../../src/guard/fence-store.ts'
import { decide, type Verdict, type WriteClaim } from '../../src/guard/verdict.ts'
import { read } from '../house/project.ts'
import { section, spans, table } from './markdown.ts'

const GUARANTEES = 'docs/guarantees.md'
const rows = table(GUARANTEES, '## The verdict')
const codes = rows.map(([code]) => spans(code)[0] ?? '')

interface World {
  fence: Fence
  operation: Operation | undefined
  pending: JobView['pending']
}

const begun = { generation: 4, fingerprint: 'f', attemptId: 't' }
const older = { generation: 4, remainingMs: 1 }

/** What makes each line of the table hold, in its order; each leaves the others as they are. */
const conditions: ((world: World) => void)[] = [
  ({ fence }) => Object.assign(fence, { generation: 6 }),
  ({ fence }) => Object.assign(fence, { holder: { kind: 'lease', leaseId: 'other' } }),
  (world) => Object.assign(world.operation ?? {}, { fingerprint: 'g' }),
  (world) => {
    world.operation = { status: 'applied', generation: 4, fingerprint: 'f', result: undefined }
  },
  (world) => {
    world.operation = { ...begun, status: 'in_flight', overdue: false, remainingMs: 1 }
  },
  (world) => {
    world.operation = { ...begun, status: 'unknown' }
  },
  ({ fence }) => Object.assign(fence, { sealed: true }),
  (world) => {
    world.pending = { ...world.pending, overdue: older }
  },
  (world) => {
    world.pending = { ...world.pending, inFlight: older }
  },
  () => {},
]

const write: WriteClaim = {
  token: { jobId: 'job', generation: 5, leaseId: 'mine' },
  operationId: 'x',
  fingerprint: 'f',
}

function said(verdict: Verdict): string {
  if (verdict.status === 'refuse') return verdict.code
  return verdict.status === 'apply' ? 'applied' : 'replayed'
}

/** The verdict where the lines from this one on hold, all at once. */
function saidFrom(line: number): string {
  const fence: Fence = {
    generation: 5,
    holder: { kind: 'lease', leaseId: 'mine' },
    sealed: false,
  }
  const world: World = { fence, operation: undefined, pending: {} }
  // From the last one up: of the records that an operation can have, the first line's counts.
  for (const condition of conditions.slice(line).reverse()) condition(world)
  return said(decide({ ...world, census: undefined }, write))
}

describe('the table of the verdict', () => {
  it('has a line for every verdict that there is', () => {
    expect(new Set(codes)).toEqual(new Set([...verdictCodes, 'applied', 'replayed']))
    expect(rows).toHaveLength(conditions.length)
  })

  it.each(rows.map(([code], line) => ({ code: spans(code)[0] ?? '', line })))(
    'line $line: $code is said where it and all that follow hold',
    ({ code, line }) => {
      expect(saidFrom(line)).toBe(code)
    },
  )

  it.each(rows)('%s is retryable as the code has it', (cell, _condition, retryable) => {
    const [code = ''] = spans(cell)
    const refusal = verdictCodes.includes(code as VerdictCode)
    expect(retryable).toBe(refusal ? (isRetryable(code as VerdictCode) ? 'yes' : 'no') : '')
  })
})

describe('the invariants', () => {
  const headings = [...read(GUARANTEES).matchAll(/^### (I\d+): .+$/gm)]

  it('are I1 to I10', () => {
    const expected = Array.from({ length: 10 }, (_, i) => `I${i + 1}`)
    expect(headings.map(([, name]) => name)).toEqual(expected)
  })

  it.each(headings.map(([heading]) => heading))('%s is held by tests that exist', (heading) => {
    const held = [...section(GUARANTEES, heading).matchAll(/^- `(.+)`: "(.+)"$/gm)]
    expect(held.length).toBeGreaterThan(0)
    for (const [, path = '', title = ''] of held) {
      expect(read(path).replaceAll("\\'", "'")).toContain(title)
    }
  })
})
