import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { describe, expect, it, vi } from 'vitest'
import { type HeldLease, StoreUnavailableError } from 'writefence'
import { DEADLINE, runBench, settled, TTL } from './run-bench.ts'
import { never } from './scripted-lease-store.ts'

const bench = runBench()
const { run } = bench

describe('a run', () => {
  it('claims, works and completes', async () => {
    const outcome = await settled(run({}, async ({ generation }) => generation * 10))
    expect(outcome).toEqual({ status: 'completed', value: 10, generation: 1 })
    expect(bench.names()).toEqual(['claimed', 'completed'])
    expect(bench.events[0]).toMatchObject({ jobId: 'j', owner: 'w', generation: 1 })
    expect(await bench.store.get('j')).toMatchObject({ status: 'completed', generation: 1 })
    expect(bench.store.count('release')).toBe(0)
  })

  it('gives a job that recurs back instead', async () => {
    for (const generation of [1, 2]) {
      const outcome = await settled(run({ settle: 'release' }, () => 'done'))
      expect(outcome).toEqual({ status: 'released', value: 'done', generation })
    }
    expect(bench.store.count('complete')).toBe(0)
    expect(bench.names()).toEqual(['claimed', 'released', 'claimed', 'released'])
  })

  it('tells that the job is held, and until when', async () => {
    await bench.store.claim({ jobId: 'j', owner: 'other', ttlMs: 5_000 })
    const handler = vi.fn()
    expect(await settled(run({}, handler))).toEqual({ status: 'held', retryAfterMs: 5_000 })
    expect(bench.names()).toEqual(['held'])
    expect(handler).not.toHaveBeenCalled()
  })

  it('tells that the job was completed before', async () => {
    await settled(run({}, () => {}))
    const handler = vi.fn()
    expect(await settled(run({}, handler))).toEqual({ status: 'already_completed' })
    expect(bench.names().slice(2)).toEqual(['already_completed'])
    expect(handler).not.toHaveBeenCalled()
  })

  it('R37: works for five ttls under one generation while another one polls', async () => {
    const outcome = run({}, async ({ generation }) => {
      for (let i = 0; i < 50; i += 1) {
        await bench.store.wait(TTL / 10)
        const answer = await bench.store.claim({ jobId: 'j', owner: 'other', ttlMs: TTL })
        expect(answer.status).toBe('held')
      }
      return generation
    })
    expect(await settled(outcome)).toEqual({ status: 'completed', value: 1, generation: 1 })
  })

  it('R32: several leases of one process are renewed each', async () => {
    const short = run({ jobId: 'a' }, () => bench.store.wait(TTL / 2))
    const long = run({ jobId: 'b' }, () => bench.store.wait(4 * TTL))
    expect((await settled(short)).status).toBe('completed')
    const next = run({ jobId: 'c' }, () => bench.store.wait(4 * TTL))
    expect((await settled(long)).status).toBe('completed')
    expect((await settled(next)).status).toBe('completed')
  })

  it('R41: a lease of 90 days is renewed by the quarter of an hour', async () => {
    const warnings: unknown[] = []
    const warn = (warning: Error) => warnings.push(warning)
    process.on('warning', warn)
    const hour = 60 * 60 * 1000
    const outcome = run({ ttlMs: 90 * 24 * hour }, () => bench.store.wait(hour))
    await vi.advanceTimersByTimeAsync(hour)
    expect((await outcome).status).toBe('completed')
    expect(bench.store.count('renew')).toBe(3)
    process.off('warning', warn)
    expect(warnings).toEqual([])
  })

  it('R40: the generation counts the attempts: a handler can give up for good', async () => {
    // Three workers died with the job.
    for (let i = 0; i < 3; i += 1) {
      await bench.store.claim({ jobId: 'j', owner: 'dead', ttlMs: 1 })
      vi.setSystemTime(Date.now() + 1)
    }
    const work = vi.fn()
    const handler = ({ generation }: HeldLease) => (generation > 3 ? 'parked' : work())
    expect(await settled(run({}, handler))).toMatchObject({ value: 'parked', generation: 4 })
    expect(await settled(run({}, handler))).toEqual({ status: 'already_completed' })
    expect(work).not.toHaveBeenCalled()
    await bench.store.reopen('j')
    expect(await settled(run({}, handler))).toMatchObject({ value: 'parked', generation: 5 })
  })

  it('publishes each step to the diagnostics channel as well', async () => {
    const published: unknown[] = []
    const listener = (event: unknown) => published.push(event)
    subscribe('writefence:lease', listener)
    await settled(run({}, () => bench.store.wait(TTL / 2)))
    unsubscribe('writefence:lease', listener)
    expect(published).toEqual(bench.events)
    expect(bench.names()).toEqual(['claimed', 'renewed', 'completed'])
  })

  it('an onEvent that throws or rejects changes nothing but the warnings', async () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const thrower = () => {
      throw new Error('no')
    }
    expect((await settled(run({ onEvent: thrower }, () => {}))).status).toBe('completed')
    const rejecter = async () => Promise.reject(Object.create(null))
    const again = await settled(run({ jobId: 'k', onEvent: rejecter }, () => {}))
    expect(again.status).toBe('completed')
    expect(warn).toHaveBeenCalledTimes(4)
    const [[text, options] = []] = warn.mock.calls
    expect(text).toMatch(/^onEvent threw: Error: no/)
    expect(options).toEqual({ code: 'WRITEFENCE_ON_EVENT' })
    warn.mockRestore()
  })
})

describe('claiming', () => {
  it('R05: a claim whose answer comes after the deadline starts nothing', async () => {
    bench.store.script.claim = async (carryOut) => {
      const answer = carryOut()
      await bench.store.wait(2 * TTL)
      return answer
    }
    const handler = vi.fn()
    const outcome = await settled(run({}, handler), DEADLINE)
    expect(outcome).toMatchObject({ status: 'lost', reason: 'unreachable' })
    expect(bench.names()).toEqual(['lost'])
    await vi.advanceTimersByTimeAsync(3 * TTL)
    expect(handler).not.toHaveBeenCalled()
    expect(bench.store.calls.map(({ verb }) => verb)).toEqual(['claim'])
  })

  it('R05: a claim that is read after the deadline starts nothing, and is given back', async () => {
    bench.store.script.claim = (carryOut) => {
      const answer = carryOut()
      // The answer was there in time, the process was not.
      vi.setSystemTime(Date.now() + DEADLINE)
      return answer
    }
    const handler = vi.fn()
    const outcome = await settled(run({}, handler))
    expect(outcome).toEqual({ status: 'lost', reason: 'expired' })
    expect(handler).not.toHaveBeenCalled()
    expect(bench.names()).toEqual(['claimed', 'lost', 'released'])
    expect(await bench.store.get('j')).toMatchObject({ status: 'released' })
  })

  it('a claim whose answer was lost is repeated, and finds its own lease', async () => {
    bench.store.script.claim = (carryOut, call) => {
      const answer = carryOut()
      if (call === 1) throw new Error('ECONNRESET')
      return answer
    }
    const outcome = await settled(run({}, () => {}))
    expect(outcome).toMatchObject({ status: 'completed', generation: 1 })
    const ids = bench.store.calls.filter(({ verb }) => verb === 'claim').map((call) => call.leaseId)
    expect(ids).toHaveLength(2)
    expect(ids[0]).toBe(ids[1])
    expect(ids[0]).toMatch(/^[0-9a-f]{32}$/)
  })

  it('the deadline counts from the first sending under its leaseId', async () => {
    bench.store.script.claim = async (carryOut, call) => {
      await bench.store.wait(4_000)
      if (call === 1) throw new Error('ECONNRESET')
      return carryOut()
    }
    const outcome = await settled(run({}, ({ remainingMs }) => remainingMs()))
    const left = outcome.status === 'completed' ? outcome.value : undefined
    expect(left).toBeLessThanOrEqual(DEADLINE - 8_000)
    expect(left).toBeGreaterThan(DEADLINE - 8_100)
  })

  it('a repetition that hangs is given up at the deadline of the first sending', async () => {
    bench.store.script.claim = async (_, call) => {
      if (call > 1) return never()
      await bench.store.wait(4_000)
      throw new Error('ECONNRESET')
    }
    const outcome = await settled(
      run({}, () => {}),
      DEADLINE + 50,
    )
    expect(outcome).toMatchObject({ status: 'lost', reason: 'unreachable' })
    expect(bench.store.count('claim')).toBe(2)
  })

  it('a claim that fails in the last millisecond is not repeated', async () => {
    const error = new Error('ECONNRESET')
    bench.store.script.claim = async () => {
      await bench.store.wait(DEADLINE - 1)
      throw error
    }
    const outcome = await settled(run({}, () => {}))
    expect(outcome).toEqual({ status: 'lost', reason: 'unreachable', error })
    expect(bench.store.count('claim')).toBe(1)
  })

  it('a store that fails is asked three times, then its error is thrown', async () => {
    const error = new StoreUnavailableError('down')
    bench.store.script.claim = () => Promise.reject(error)
    const handler = vi.fn()
    await expect(settled(run({}, handler))).rejects.toBe(error)
    const at = bench.store.calls.map((call) => call.at)
    expect(at).toHaveLength(3)
    // Not in one go: a store that comes back must not be met by all its clients at once.
    for (const [i, time] of at.slice(1).entries()) {
      expect(time - (at[i] ?? 0)).toBeGreaterThanOrEqual(25)
    }
    expect(handler).not.toHaveBeenCalled()
  })

  it('a store that would answer the same is not asked again', async () => {
    const forbidden = new StoreUnavailableError('forbidden', { retryable: false })
    for (const error of [new TypeError('owner'), new RangeError('jobId'), forbidden]) {
      bench.store.script.claim = () => Promise.reject(error)
      await expect(settled(run({}, () => {}))).rejects.toBe(error)
    }
    expect(bench.store.count('claim')).toBe(3)
  })

  it('a store that hangs is waited for as long as told, if the lease would last', async () => {
    bench.store.script.claim = () => never()
    const outcome = settled(
      run({ ttlMs: 10 * TTL }, () => {}),
      TTL,
    )
    await expect(outcome).rejects.toThrow('no answer to claim')
    const other = settled(
      run({ ttlMs: 10 * TTL, claimTimeoutMs: 500 }, () => {}),
      500,
    )
    await expect(other).rejects.toBeInstanceOf(StoreUnavailableError)
    expect(bench.store.count('claim')).toBe(2)
  })
})
