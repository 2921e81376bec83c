import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { StoreUnavailableError } from 'writefence'
import { answerWithin, backoffMs, later, pause } from '../../src/lease/waiting.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
})

describe('waiting', () => {
  it('R41: no timer fires at once, and none is longer than a timer can be', () => {
    const fired: string[] = []
    later(() => fired.push('no time'), 0)
    later(() => fired.push('negative'), -5)
    later(() => fired.push('a fraction'), 1.2)
    later(() => fired.push('a year'), 366 * 24 * 60 * 60_000)
    expect(fired).toEqual([])
    vi.advanceTimersByTime(1)
    expect(fired).toEqual(['no time', 'negative'])
    vi.advanceTimersByTime(1)
    expect(fired).toEqual(['no time', 'negative', 'a fraction'])
    vi.advanceTimersByTime(2 ** 31 - 4)
    expect(fired).toHaveLength(3)
    vi.advanceTimersByTime(1)
    expect(fired.at(-1)).toBe('a year')
  })

  it('an answer that is late is dropped, though it is an error', async () => {
    const answer = answerWithin(100, 'renew', async () => {
      await new Promise((resolve) => setTimeout(resolve, 200))
      throw new Error('too late')
    })
    const error = answer.catch((reason: unknown) => reason)
    await vi.advanceTimersByTimeAsync(300)
    expect(await error).toBeInstanceOf(StoreUnavailableError)
    expect(await error).toMatchObject({ message: 'no answer to renew within 100 ms' })
  })

  it('a pause ends in its time, or with its signal, and leaves no listener', async () => {
    const stop = new AbortController()
    const { signal } = stop
    const ended: string[] = []
    void pause(100, signal).then(() => ended.push('short'))
    void pause(10_000, signal).then(() => ended.push('long'))
    await vi.advanceTimersByTimeAsync(100)
    expect(ended).toEqual(['short'])
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    stop.abort()
    await vi.advanceTimersByTimeAsync(0)
    expect(ended).toEqual(['short', 'long'])
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('there is no pause on a signal that has aborted', async () => {
    const ended = vi.fn()
    void pause(10_000, AbortSignal.abort()).then(ended)
    await vi.advanceTimersByTimeAsync(0)
    expect(ended).toHaveBeenCalledOnce()
  })

  it('repetitions come slower and slower, up to two seconds', () => {
    for (const [failures, most] of [50, 100, 200, 400, 800, 1_600, 2_000, 2_000].entries()) {
      for (let i = 0; i < 20; i += 1) {
        expect(backoffMs(failures)).toBeGreaterThanOrEqual(most / 2)
        expect(backoffMs(failures)).toBeLessThan(most)
      }
    }
    expect(backoffMs(10_000)).toBeLessThan(2_000)
  })
})
