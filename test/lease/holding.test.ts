import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { LeaseLostError } from '../../src/errors.ts'
import { Deadline, instant } from '../../src/lease/deadline.ts'
import { Holding } from '../../src/lease/holding.ts'

const lease = { jobId: 'j', owner: 'w', generation: 7, leaseId: 'l', leaseUntil: 0, ttlMs: 1_000 }
let losses: LeaseLostError[]
let holding: Holding

beforeEach(() => {
  vi.useFakeTimers()
  losses = []
  holding = new Holding(lease, new Deadline(instant(), 1_000), (error) => losses.push(error))
})
afterEach(() => void vi.useRealTimers())

/** Time passes, and no timer has had a chance. */
function away(ms: number): void {
  vi.setSystemTime(Date.now() + ms)
}

describe('a lease that is held', () => {
  it('is lost once: the first reason stays, and only it is told', () => {
    const cause = new Error('stale')
    holding.lose('fenced', cause)
    holding.lose('superseded')
    away(1_000)
    expect(holding.remainingMs()).toBe(0)
    expect(losses).toHaveLength(1)
    expect(losses[0]).toMatchObject({ reason: 'fenced', cause, jobId: 'j', generation: 7 })
    expect(holding.lostSignal.reason).toBe(losses[0])
    expect(holding.end('completed')).toBe(losses[0])
  })

  it.each([
    ['remainingMs', () => holding.remainingMs()],
    ['assertHeld', () => expect(() => holding.assertHeld()).toThrow(/expired/)],
    ['a confirmation', () => holding.confirm(instant())],
    ['the end of the work', () => holding.end('completed')],
  ])('is over when the deadline has passed, whoever looks first: %s', (_, look) => {
    away(999)
    holding.assertHeld()
    away(1)
    look()
    expect(losses.map(({ reason }) => reason)).toEqual(['expired'])
    expect(holding.remainingMs()).toBe(0)
    expect(holding.lostSignal.aborted).toBe(true)
  })

  it('says who was silent where an answer was owed', () => {
    holding.unanswered = true
    away(1_000)
    const loss = holding.end('released')
    expect(loss).toMatchObject({ reason: 'unreachable' })
    expect(loss).not.toHaveProperty('cause')
  })

  it('goes on from the sending of what was confirmed', () => {
    holding.unanswered = true
    vi.advanceTimersByTime(400)
    const sent = instant()
    vi.advanceTimersByTime(100)
    holding.confirm(sent)
    expect(holding.remainingMs()).toBe(900)
    expect(holding.unanswered).toBe(false)
  })

  it('ends with the work without being lost', () => {
    expect(holding.end('released')).toBeUndefined()
    expect(holding.remainingMs()).toBe(0)
    expect(() => holding.assertHeld()).toThrow(expect.objectContaining({ reason: 'released' }))
    away(1_000)
    holding.lose('superseded')
    expect(losses).toEqual([])
    expect(holding.lostSignal.aborted).toBe(false)
  })
})
