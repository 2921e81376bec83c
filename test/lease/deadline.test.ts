import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Deadline, elapsedMs, instant } from '../../src/lease/deadline.ts'

const HOUR = 60 * 60 * 1000
let monotonic = 0
let wall = 0

beforeEach(() => {
  monotonic = 5_000
  wall = 1_700_000_000_000
  vi.spyOn(performance, 'now').mockImplementation(() => monotonic)
  vi.spyOn(Date, 'now').mockImplementation(() => wall)
})
afterEach(() => {
  vi.restoreAllMocks()
})

function pass(ms: number, wallMs = ms): void {
  monotonic += ms
  wall += wallMs
}

describe('the deadline of a lease', () => {
  it('runs from the sending for as long as the lease lasts', () => {
    const deadline = new Deadline(instant(), 1_000)
    expect(deadline.remainingMs()).toBe(1_000)
    pass(999)
    expect(deadline.remainingMs()).toBe(1)
    pass(1)
    expect(deadline.remainingMs()).toBe(0)
  })

  it('R25: is over once the wall clock says so, though the monotonic one stood still', () => {
    const deadline = new Deadline(instant(), 30_000)
    pass(1_000, HOUR)
    expect(deadline.remainingMs()).toBeLessThan(0)
  })

  it('R25: is over once the monotonic clock says so, though the wall clock went back', () => {
    const deadline = new Deadline(instant(), 30_000)
    pass(HOUR, -HOUR)
    expect(deadline.remainingMs()).toBeLessThan(0)
    expect(elapsedMs({ monotonic: monotonic - 7, wall: wall - 3 })).toBe(7)
    expect(elapsedMs({ monotonic: monotonic - 3, wall: wall - 7 })).toBe(7)
  })

  it('R31: moves on to a later sending, and never back to an earlier one', () => {
    const first = instant()
    const deadline = new Deadline(first, 1_000)
    pass(400)
    const second = instant()
    pass(100)
    deadline.confirm(second)
    expect(deadline.remainingMs()).toBe(900)
    deadline.confirm(first)
    expect(deadline.remainingMs()).toBe(900)
  })

  it('gains nothing where the monotonic clock has not moved on since the sending', () => {
    const deadline = new Deadline(instant(), 1_000)
    pass(0, 500)
    deadline.confirm(instant())
    expect(deadline.remainingMs()).toBe(500)
  })

  it('is anchored at both clocks anew: a step back of the wall clock is not carried on', () => {
    const deadline = new Deadline(instant(), 30_000)
    pass(1_000, -HOUR)
    deadline.confirm(instant())
    // Suspended: the monotonic clock stands still, the wall clock goes on.
    pass(0, 30_000)
    expect(deadline.remainingMs()).toBe(0)
  })
})
