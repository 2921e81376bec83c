import { describe, expect, it, vi } from 'vitest'
import { StoreUnavailableError } from 'writefence'
import { DEADLINE, runBench, settled, TTL } from './run-bench.ts'
import { never } from './scripted-lease-store.ts'

const bench = runBench()
const { run } = bench

describe('a run that is asked to stop', () => {
  it('before it began claims nothing', async () => {
    const handler = vi.fn()
    const outcome = await settled(run({ signal: AbortSignal.abort() }, handler))
    expect(outcome).toEqual({ status: 'stopped' })
    expect(bench.store.calls).toEqual([])
    expect(bench.names()).toEqual(['stopped'])
    expect(handler).not.toHaveBeenCalled()
  })

  it('while it claims gives back what it gets, and starts nothing', async () => {
    const stop = new AbortController()
    bench.store.script.claim = async (carryOut) => {
      stop.abort()
      await bench.store.wait(100)
      return carryOut()
    }
    const handler = vi.fn()
    expect(await settled(run({ signal: stop.signal }, handler))).toEqual({ status: 'stopped' })
    expect(handler).not.toHaveBeenCalled()
    expect(bench.names()).toEqual(['claimed', 'released', 'stopped'])
  })

  it('while it waits to claim again claims no more', async () => {
    const stop = new AbortController()
    bench.store.script.claim = () => {
      stop.abort()
      throw new StoreUnavailableError('down')
    }
    const outcome = await settled(
      run({ signal: stop.signal }, () => {}),
      50,
    )
    expect(outcome).toEqual({ status: 'stopped' })
    expect(bench.store.count('claim')).toBe(1)
  })

  it('R34: aborts the handler, renews until it has settled, and only then gives back', async () => {
    const stop = new AbortController()
    const reason = new Error('SIGTERM')
    const steps: string[] = []
    bench.store.script.release = (carryOut) => {
      steps.push('release')
      return carryOut()
    }
    const outcome = run({ signal: stop.signal }, async ({ signal, assertHeld }) => {
      signal.addEventListener('abort', () => steps.push('abort'))
      await bench.store.wait(TTL)
      expect(signal.reason).toBe(reason)
      // What was begun can be finished: the lease is still held.
      assertHeld()
      steps.push('settle')
    })
    await vi.advanceTimersByTimeAsync(2_000)
    stop.abort(reason)
    expect(await settled(outcome)).toEqual({ status: 'stopped' })
    expect(steps).toEqual(['abort', 'settle', 'release'])
    expect(bench.store.count('renew')).toBe(2)
    expect(bench.store.count('complete')).toBe(0)
    // R35: at once, without waiting for the ttl.
    const next = await bench.store.claim({ jobId: 'j', owner: 'b', ttlMs: TTL })
    expect(next).toMatchObject({ status: 'claimed', lease: { generation: 2 } })
  })

  it('R34: a handler that does not settle keeps its lease until it runs out', async () => {
    const stop = new AbortController()
    const outcome = run({ signal: stop.signal, graceMs: 15_000 }, () => never())
    let ended = false
    outcome.finally(() => {
      ended = true
    })
    await vi.advanceTimersByTimeAsync(0)
    stop.abort()
    await vi.advanceTimersByTimeAsync(10_000 + TTL)
    expect(bench.store.count('renew')).toBe(1)
    expect(bench.events.at(-1)).toMatchObject({ event: 'lost', reason: 'expired' })
    expect(bench.store.count('release')).toBe(0)
    expect(ended).toBe(false)
    const next = await bench.store.claim({ jobId: 'j', owner: 'b', ttlMs: TTL })
    expect(next.status).toBe('claimed')
    expect(vi.getTimerCount()).toBe(0)
  })

  it('has no error where the handler threw the abort', async () => {
    const reason = new Error('SIGTERM')
    const thrown: unknown[] = [
      reason,
      new DOMException('aborted', 'AbortError'),
      Object.assign(new Error('aborted'), { name: 'AbortError' }),
    ]
    for (const error of thrown) {
      const stop = new AbortController()
      const outcome = run({ signal: stop.signal }, () => {
        stop.abort(reason)
        throw error
      })
      expect(await settled(outcome)).toEqual({ status: 'stopped' })
      expect(bench.names().slice(-2)).toEqual(['released', 'stopped'])
    }
  })

  it('has any other error of the handler rethrown, after the job was given back', async () => {
    const stop = new AbortController()
    const error = new Error('broken')
    const outcome = run({ signal: stop.signal }, () => {
      stop.abort()
      throw error
    })
    await expect(settled(outcome)).rejects.toBe(error)
    expect(await bench.store.get('j')).toMatchObject({ status: 'released' })
  })

  it('without a stop an AbortError is an error', async () => {
    const error = new DOMException('mine', 'AbortError')
    const { signal } = new AbortController()
    await expect(settled(run({ signal }, () => Promise.reject(error)))).rejects.toBe(error)
  })

  it('is lost where the lease was lost meanwhile', async () => {
    const stop = new AbortController()
    bench.store.script.renew = () => ({ status: 'lost', reason: 'superseded' })
    const outcome = run({ signal: stop.signal }, () => bench.store.wait(TTL))
    await vi.advanceTimersByTimeAsync(0)
    stop.abort()
    expect(await settled(outcome)).toEqual({ status: 'lost', reason: 'superseded' })
    expect(bench.store.count('release')).toBe(0)
    const other = new AbortController()
    bench.store.script.release = () => ({ status: 'lost', reason: 'superseded' })
    const late = run({ jobId: 'k', signal: other.signal }, () => other.abort())
    expect(await settled(late)).toEqual({ status: 'lost', reason: 'superseded' })
  })

  it('R128: does not wait long for a store that is closing too', async () => {
    const stop = new AbortController()
    bench.store.script.release = () => never()
    const limits = { signal: stop.signal, requestTimeoutMs: 500 }
    const outcome = run(limits, () => stop.abort())
    expect(await settled(outcome, 550)).toEqual({ status: 'stopped' })
    expect(bench.names()).toEqual(['claimed', 'settle_failed', 'stopped'])
    const error = { message: 'no answer to release within 500 ms' }
    expect(bench.events[1]).toMatchObject({ error })
  })

  it('once it is over it hears of no stop', async () => {
    const stop = new AbortController()
    let signal: AbortSignal | undefined
    const outcome = run({ signal: stop.signal }, (lease) => {
      signal = lease.signal
    })
    expect((await settled(outcome)).status).toBe('completed')
    stop.abort()
    expect(signal?.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(DEADLINE)
    expect(bench.names()).toEqual(['claimed', 'completed'])
  })
})
