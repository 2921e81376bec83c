import { describe, expect, it, vi } from 'vitest'
import {
  type DestinationState,
  type FencingToken,
  StoreUnavailableError,
  WriteGuard,
  WriteRefusedError,
} from 'writefence'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'
import { runBench, settled, TTL } from './run-bench.ts'
import { never } from './scripted-lease-store.ts'

const bench = runBench()
const { run } = bench

const clear: DestinationState = { sealed: false, older: { inFlight: 0, overdue: 0 } }
const sealed: DestinationState = { ...clear, sealed: true }
const inFlight: DestinationState = { ...clear, older: { inFlight: 1, overdue: 0 } }
const overdue: DestinationState = { ...clear, older: { inFlight: 0, overdue: 1 } }

/** A destination that says one thing after the other, and the last one for ever. */
function saying(...answers: (DestinationState | Error | (() => Promise<DestinationState>))[]) {
  const tokens: FencingToken[] = []
  return {
    tokens,
    async advance(token: FencingToken): Promise<DestinationState> {
      const answer = answers[Math.min(tokens.length, answers.length - 1)]
      tokens.push(token)
      if (answer instanceof Error) throw answer
      return typeof answer === 'function' ? answer() : (answer as DestinationState)
    },
  }
}

describe('taking over', () => {
  it('fences every destination with the token alone, before the handler starts', async () => {
    const places = [saying(clear), saying(clear)]
    const handler = vi.fn(() => places.map(({ tokens }) => tokens.length))
    const outcome = await settled(run({ destinations: places }, handler))
    expect(outcome).toMatchObject({ status: 'completed', value: [1, 1] })
    const [{ leaseId } = {}] = bench.store.calls
    for (const { tokens } of places)
      expect(tokens).toEqual([{ jobId: 'j', generation: 1, leaseId }])
    expect(bench.names()).toEqual(['claimed', 'fenced', 'completed'])
  })

  it('waits for what older generations have in flight, then for what is overdue', async () => {
    const place = saying(inFlight, overdue, inFlight, clear)
    const other = saying(clear)
    let asked = 0
    const outcome = await settled(
      run({ destinations: [place, other] }, () => {
        asked = place.tokens.length
      }),
    )
    expect(outcome.status).toBe('completed')
    expect(asked).toBe(4)
    // One that is clear is not asked again.
    expect(other.tokens).toHaveLength(1)
  })

  it('does not ask faster and faster, nor slower than every two seconds', async () => {
    const at: number[] = []
    const place = saying(async () => {
      at.push(Date.now())
      return inFlight
    })
    const outcome = run({ destinations: [place], takeoverTimeoutMs: 20_000 }, () => {})
    await expect(settled(outcome)).rejects.toMatchObject({ code: 'in_flight', retryable: true })
    const gaps = at.slice(1).map((time, i) => time - (at[i] ?? 0))
    expect(Math.min(...gaps.slice(0, -1))).toBeGreaterThanOrEqual(25)
    expect(Math.max(...gaps)).toBeLessThanOrEqual(2_001)
    expect(at.length).toBeLessThan(30)
  })

  it('waits as long as it is told to', async () => {
    const wait = { jobId: 'j', generation: 1, retryAfterMs: 3_000 }
    const at: number[] = []
    const place = saying(
      async () => {
        at.push(Date.now())
        throw new WriteRefusedError('in_flight', wait)
      },
      async () => {
        at.push(Date.now())
        return clear
      },
    )
    expect((await settled(run({ destinations: [place] }, () => {}))).status).toBe('completed')
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBe(3_000)
  })

  it('ends when its time is up, and asks no more at the very end', async () => {
    const told = { jobId: 'j', generation: 1, retryAfterMs: 2_500 }
    const place = saying(new WriteRefusedError('in_flight', told))
    const outcome = run({ destinations: [place], takeoverTimeoutMs: 5_000 }, () => {})
    await expect(settled(outcome)).rejects.toMatchObject({ code: 'in_flight' })
    expect(place.tokens).toHaveLength(3)
  })

  it('renews meanwhile', async () => {
    const place = saying(inFlight)
    const outcome = run({ destinations: [place], takeoverTimeoutMs: 2 * TTL }, () => {})
    await expect(settled(outcome)).rejects.toMatchObject({ code: 'in_flight' })
    expect(bench.store.count('renew')).toBeGreaterThanOrEqual(5)
  })

  it('ends with outcome_unknown where what is overdue never ends, and gives back', async () => {
    const handler = vi.fn()
    const outcome = run({ destinations: [saying(overdue)], takeoverTimeoutMs: 5_000 }, handler)
    await expect(settled(outcome, 6_000)).rejects.toMatchObject({
      code: 'outcome_unknown',
      jobId: 'j',
      generation: 1,
    })
    expect(handler).not.toHaveBeenCalled()
    expect(bench.names()).toEqual(['claimed', 'released'])
  })

  it('goes on once a destination answers again, and ends where it never does', async () => {
    const down = new StoreUnavailableError('down')
    const again = saying(down, down, clear)
    expect((await settled(run({ destinations: [again] }, () => {}))).status).toBe('completed')

    const options = { jobId: 'k', takeoverTimeoutMs: 5_000 }
    const gone = run({ ...options, destinations: [saying(down)] }, () => {})
    await expect(settled(gone, 6_000)).rejects.toBe(down)

    const silent = { ...options, jobId: 'l', requestTimeoutMs: 2_000 }
    const hanging = run({ ...silent, destinations: [saying(() => never())] }, () => {})
    await expect(settled(hanging, 9_000)).rejects.toThrow('no answer to advance')
    expect(bench.names().filter((name) => name === 'released')).toHaveLength(2)
  })

  it.each(['stale', 'conflict'] as const)('is a loss where the token is %s', async (code) => {
    const refusal = new WriteRefusedError(code, { jobId: 'j', generation: 1, highestGeneration: 9 })
    const handler = vi.fn()
    const outcome = await settled(run({ destinations: [saying(refusal)] }, handler))
    expect(outcome).toEqual({ status: 'lost', reason: 'fenced', error: refusal })
    expect(handler).not.toHaveBeenCalled()
    expect(bench.names()).toEqual(['claimed', 'lost'])
  })

  it.each([
    new WriteRefusedError('forbidden', { jobId: 'j', generation: 1 }),
    new TypeError('not a state'),
    new RangeError('jobId'),
  ])('ends at once where no repetition helps: %s', async (error) => {
    const other = saying(inFlight)
    const place = saying(error)
    const outcome = run({ destinations: [other, place] }, () => {})
    await expect(settled(outcome, 1_000)).rejects.toBe(error)
    expect(place.tokens).toHaveLength(1)
    expect(bench.store.count('release')).toBe(1)
  })

  it('completes a job that every destination has sealed, without running it again', async () => {
    const handler = vi.fn()
    const places = [saying(sealed), saying({ ...inFlight, sealed: true }, sealed)]
    const outcome = await settled(run({ destinations: places }, handler))
    expect(outcome).toEqual({ status: 'already_completed' })
    expect(handler).not.toHaveBeenCalled()
    expect(await bench.store.get('j')).toMatchObject({ status: 'completed' })
    expect(bench.names()).toEqual(['claimed', 'fenced', 'completed', 'already_completed'])
  })

  it('runs the handler where one destination is still open, or the job recurs', async () => {
    const places = [saying(sealed), saying(clear)]
    expect(await settled(run({ destinations: places }, () => 'ran'))).toMatchObject({
      value: 'ran',
    })
    const recurring = { jobId: 'k', destinations: [saying(sealed)], settle: 'release' } as const
    expect(await settled(run(recurring, () => 'ran'))).toMatchObject({ value: 'ran' })
  })

  it('stops waiting where it is asked to stop, and where the lease is lost', async () => {
    const stop = new AbortController()
    const handler = vi.fn()
    const waiting = run({ signal: stop.signal, destinations: [saying(inFlight)] }, handler)
    await vi.advanceTimersByTimeAsync(1_000)
    stop.abort()
    expect(await settled(waiting, 100)).toEqual({ status: 'stopped' })

    bench.store.script.renew = () => ({ status: 'lost', reason: 'superseded' })
    const losing = run({ jobId: 'k', destinations: [saying(inFlight)] }, handler)
    expect(await settled(losing, 11_000)).toEqual({ status: 'lost', reason: 'superseded' })
    expect(handler).not.toHaveBeenCalled()
    expect(bench.names()).not.toContain('fenced')
  })

  it('R23: starts nothing where the process was away until the deadline meanwhile', async () => {
    const handler = vi.fn()
    const place = saying(async () => {
      vi.setSystemTime(Date.now() + TTL)
      return clear
    })
    const outcome = await settled(run({ destinations: [place] }, handler))
    expect(outcome).toEqual({ status: 'lost', reason: 'expired' })
    expect(handler).not.toHaveBeenCalled()
  })

  it('R52: takes a WriteGuard as it is, and leaves its fence behind', async () => {
    vi.useRealTimers()
    const db = openSqlite(':memory:')
    const guard = new WriteGuard(new SqliteFenceStore(db))
    await guard.advance({ jobId: 'j', generation: 1, leaseId: 'predecessor' })
    await bench.store.raise('j', 1)
    const outcome = await run({ destinations: [guard] }, ({ generation }) => generation)
    expect(outcome).toMatchObject({ status: 'completed', value: 2 })
    expect(await guard.inspect('j')).toMatchObject({ highestGeneration: 2, holder: 'lease' })
    db.close()
  })
})
