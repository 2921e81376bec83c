import { describe, expect, it } from 'vitest'
import { StoreUnavailableError } from 'writefence'
import { claimRule, completeRule, type LeaseRow } from '../../src/lease/lease-rules.ts'
import { MAX_GENERATION } from '../../src/token.ts'

const key = { jobId: 'j', owner: 'w', generation: 7, leaseId: 'l' }
const request = { jobId: 'j', owner: 'other', ttlMs: 1_000 }

describe('the rules of a lease store', () => {
  it('a claim that is refused puts nothing, unless the clock was set back', () => {
    const leased: LeaseRow = { ...key, status: 'leased', ttlMs: 1_000, leaseUntil: 5_000 }
    const refused = claimRule(leased, request, 'mine', 4_500)
    expect(refused.answer).toMatchObject({ status: 'held', leaseUntil: 5_000, retryAfterMs: 500 })
    expect(refused.put).toBeUndefined()
    const back = claimRule(leased, request, 'mine', 3_000)
    expect(back.answer).toMatchObject({ status: 'held', leaseUntil: 4_000, retryAfterMs: 1_000 })
    expect(back.put).toEqual({ ...leased, leaseUntil: 4_000 })
  })

  it('a job whose generations are used up is not claimable, and that is told', () => {
    const row: LeaseRow = { ...key, status: 'released', endedBy: 'holder' }
    const used = { ...row, generation: MAX_GENERATION }
    const { answer, put } = claimRule(used, request, 'mine', 0)
    expect(answer).toBeInstanceOf(StoreUnavailableError)
    expect(answer).toMatchObject({
      message: 'the generations of job "j" are used up',
      retryable: false,
    })
    expect(put).toBeUndefined()
    const last = claimRule({ ...row, generation: MAX_GENERATION - 1 }, request, 'mine', 0)
    expect(last.answer).toMatchObject({ status: 'claimed', lease: { generation: MAX_GENERATION } })
  })

  it('a completion of which nothing else is on record was in time', () => {
    const row: LeaseRow = { ...key, status: 'completed', endedBy: 'holder' }
    expect(completeRule(row, key, 0)).toEqual({ answer: { status: 'completed', lapsed: false } })
  })
})
