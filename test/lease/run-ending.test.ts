import { describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  type HeldLease,
  LeaseLostError,
  StoreUnavailableError,
  WriteRefusedError,
} from 'writefence'
import { DEADLINE, runBench, settled, TTL } from './run-bench.ts'
import { never } from './scripted-lease-store.ts'

const bench = runBench()
const { run } = bench

const verbs = () => bench.store.calls.map(({ verb }) => verb)

describe('a lease that is lost', () => {
  it('aborts at once; the run waits for the handler, and gives nothing back', async () => {
    let aborted: unknown
    const outcome = run({}, async ({ signal }) => {
      signal.addEventListener('abort', () => {
        aborted = signal.reason
      })
      await bench.store.wait(2 * TTL)
    })
    bench.store.script.renew = () => ({ status: 'lost', reason: 'superseded' })
    await vi.advanceTimersByTimeAsync(10_000)
    expect(aborted).toBeInstanceOf(LeaseLostError)
    expect(aborted).toMatchObject({ reason: 'superseded', jobId: 'j', generation: 1 })
    expect(await settled(outcome)).toEqual({ status: 'lost', reason: 'superseded' })
    expect(verbs()).toEqual(['claim', 'renew'])
    expect(bench.names()).toEqual(['claimed', 'lost'])
    expect(bench.events.at(-1)).toMatchObject({ reason: 'superseded', generation: 1 })
  })

  it('has what the handler threw, unless that is the loss itself', async () => {
    bench.store.script.renew = () => ({ status: 'lost', reason: 'released' })
    const error = new Error('half done')
    const outcome = await settled(
      run({}, async () => {
        await bench.store.wait(TTL)
        throw error
      }),
    )
    expect(outcome).toEqual({ status: 'lost', reason: 'released', error })
    const again = await settled(
      run({ jobId: 'k' }, async ({ assertHeld }) => {
        await bench.store.wait(TTL)
        assertHeld()
      }),
    )
    expect(again).toEqual({ status: 'lost', reason: 'released' })
  })

  it('R23: is noticed by a process that was away, before its next effect', async () => {
    const seen: unknown[] = []
    const sent = vi.fn()
    const outcome = await settled(
      run({ ttlMs: 300, fetch: sent }, async (lease) => {
        // The event loop was blocked: no timer had a chance.
        vi.setSystemTime(Date.now() + 1_000)
        seen.push(lease.remainingMs(), lease.signal.aborted)
        expect(lease.assertHeld).toThrow(LeaseLostError)
        await lease.fetch('http://destination.example/', { method: 'POST', operationId: 'o' })
      }),
    )
    expect(seen).toEqual([0, true])
    expect(sent).not.toHaveBeenCalled()
    expect(outcome).toEqual({ status: 'lost', reason: 'expired' })
  })

  it('R23: is noticed at the end at the latest: nothing is completed', async () => {
    const outcome = await settled(run({}, () => void vi.setSystemTime(Date.now() + DEADLINE)))
    expect(outcome).toStrictEqual({ status: 'lost', reason: 'expired' })
    expect(verbs()).toEqual(['claim'])
  })

  it('R38: by an outage of two ttls; only the next holder goes on', async () => {
    let away = true
    bench.store.script.renew = (carryOut) => {
      if (away) throw new StoreUnavailableError('away')
      return carryOut()
    }
    const first = run({ owner: 'a' }, () => bench.store.wait(3 * TTL))
    await vi.advanceTimersByTimeAsync(DEADLINE)
    expect(bench.events.at(-1)).toMatchObject({ event: 'lost', reason: 'unreachable', owner: 'a' })
    await vi.advanceTimersByTimeAsync(TTL + 1_000)
    away = false
    const second = run({ owner: 'b' }, ({ generation }) =>
      bench.store.wait(2 * TTL).then(() => generation),
    )
    expect(await settled(first)).toEqual({ status: 'lost', reason: 'unreachable' })
    expect(await settled(second)).toEqual({ status: 'completed', value: 2, generation: 2 })
  })

  it.each(['stale', 'conflict'] as const)(
    'by %s from a guard in the same process',
    async (code) => {
      const outcome = run({}, (lease) => {
        throw new WriteRefusedError(code, lease)
      })
      expect(await settled(outcome)).toMatchObject({
        status: 'lost',
        reason: 'fenced',
        error: { code },
      })
      expect(verbs()).toEqual(['claim'])
    },
  )

  it('not by a refusal of some other token', async () => {
    for (const other of [{ generation: 2 }, { jobId: 'k' }]) {
      const error = new WriteRefusedError('stale', { jobId: 'j', generation: 1, ...other })
      bench.store.rows.clear()
      const outcome = run({}, () => Promise.reject(error))
      await expect(settled(outcome)).rejects.toBe(error)
      expect(verbs().at(-1)).toBe('release')
    }
  })
})

describe('a handler that throws', () => {
  it('has its error rethrown once the job is given back', async () => {
    const error = new Error('broken')
    await expect(settled(run({}, () => Promise.reject(error)))).rejects.toBe(error)
    expect(bench.names()).toEqual(['claimed', 'released'])
    expect(await bench.store.get('j')).toMatchObject({ status: 'released' })
  })

  it('R10: has its error rethrown whatever comes of giving back', async () => {
    const error = new Error('broken')
    const scripts = [
      () => Promise.reject(new StoreUnavailableError('closing')),
      () => ({ status: 'lost', reason: 'superseded' }),
      () => never(),
    ]
    for (const script of scripts) {
      bench.store.rows.clear()
      bench.store.script.release = script
      await expect(settled(run({}, () => Promise.reject(error)))).rejects.toBe(error)
    }
  })

  it.each([undefined, null, 0, 'text'])('may throw %s', async (thrown) => {
    await expect(settled(run({}, () => Promise.reject(thrown)))).rejects.toBe(thrown)
    expect(await bench.store.get('j')).toMatchObject({ status: 'released' })
  })

  it('completes the job where it was told that the job is sealed', async () => {
    const sealed = (lease: HeldLease) => Promise.reject(new WriteRefusedError('sealed', lease))
    expect(await settled(run({}, sealed))).toEqual({ status: 'already_completed' })
    expect(bench.names()).toEqual(['claimed', 'completed', 'already_completed'])
    expect(await bench.store.get('j')).toMatchObject({ status: 'completed' })
  })

  it('does not complete a job that recurs, nor for the seal of another one', async () => {
    const sealed = (lease: HeldLease) => Promise.reject(new WriteRefusedError('sealed', lease))
    const recurring = settled(run({ settle: 'release' }, sealed))
    await expect(recurring).rejects.toMatchObject({ code: 'sealed' })
    const other = new WriteRefusedError('sealed', { jobId: 'k', generation: 2 })
    await expect(settled(run({}, () => Promise.reject(other)))).rejects.toBe(other)
    expect(await bench.store.get('j')).toMatchObject({ status: 'released' })
  })
})

describe('settling', () => {
  it('a completion whose answer was lost is repeated', async () => {
    bench.store.script.complete = (carryOut, call) => {
      const answer = carryOut()
      if (call < 3) throw new StoreUnavailableError('ECONNRESET')
      return answer
    }
    const outcome = await settled(run({}, () => 'value'))
    expect(outcome).toMatchObject({ status: 'completed', value: 'value' })
    expect(bench.names()).toEqual(['claimed', 'settle_failed', 'settle_failed', 'completed'])
  })

  it('R128: a completion that is not confirmed in time is not claimed to be one', async () => {
    const error = new StoreUnavailableError('closing')
    bench.store.script.complete = () => Promise.reject(error)
    const outcome = settled(
      run({ settleTimeoutMs: 2_000 }, () => 'value'),
      2_500,
    )
    expect(await outcome).toEqual({ status: 'lost', reason: 'unreachable', error })
    expect(bench.store.count('complete')).toBeGreaterThan(2)
    expect(bench.events.at(-1)).toMatchObject({ event: 'lost', reason: 'unreachable', error })
  })

  it('R128: a store that hangs holds the end up no longer than its time-outs', async () => {
    bench.store.script.complete = () => never()
    const limits = { requestTimeoutMs: 400, settleTimeoutMs: 1_000 }
    const outcome = settled(
      run(limits, () => {}),
      2_000,
    )
    const error = { message: 'no answer to complete within 400 ms' }
    expect(await outcome).toMatchObject({ status: 'lost', reason: 'unreachable', error })
  })

  it('a completion is repeated more and more slowly, and not at the very end', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0)
    onTestFinished(() => void vi.restoreAllMocks())
    bench.store.script.complete = () => Promise.reject(new StoreUnavailableError('closing'))
    // The pauses are 25, 50, 100 and 200 ms; after the last one nothing would be left.
    await settled(run({ settleTimeoutMs: 375 }, () => {}))
    const at = bench.store.calls.filter(({ verb }) => verb === 'complete').map((call) => call.at)
    expect(at.map((time) => time - (at[0] ?? 0))).toEqual([0, 25, 75, 175])
  })

  it.each(['superseded', 'released', 'completed', 'unknown_job'] as const)(
    'a completion that is refused is a loss: %s',
    async (reason) => {
      bench.store.script.complete = () => ({ status: 'lost', reason })
      expect(await settled(run({}, () => {}))).toStrictEqual({ status: 'lost', reason })
      expect(bench.names()).toEqual(['claimed', 'lost'])
    },
  )

  it('a late completion says so', async () => {
    bench.store.script.complete = () => ({ status: 'completed', lapsed: true })
    await settled(run({}, () => {}))
    expect(bench.events.at(-1)).toMatchObject({ event: 'completed', lapsed: true })
  })

  it('R128: giving back is tried once; the lease runs out otherwise', async () => {
    bench.store.script.release = () => Promise.reject(new StoreUnavailableError('read-only'))
    const outcome = await settled(run({ settle: 'release' }, () => 'value'))
    expect(outcome).toEqual({ status: 'released', value: 'value', generation: 1 })
    expect(bench.names()).toEqual(['claimed', 'settle_failed'])
    expect(bench.store.count('release')).toBe(1)
  })

  it('giving back what is another one’s by now is a loss', async () => {
    bench.store.script.release = () => ({ status: 'lost', reason: 'superseded' })
    const outcome = await settled(run({ settle: 'release' }, () => 'value'))
    expect(outcome).toEqual({ status: 'lost', reason: 'superseded' })
  })

  it('a renewal that is under way when the handler ends is not heard any more', async () => {
    bench.store.script.renew = async (carryOut) => {
      await bench.store.wait(5_000)
      return carryOut()
    }
    const outcome = await settled(run({}, () => bench.store.wait(11_000)))
    expect(outcome.status).toBe('completed')
    await vi.advanceTimersByTimeAsync(4 * TTL)
    expect(verbs()).toEqual(['claim', 'renew', 'complete'])
    expect(bench.names()).toEqual(['claimed', 'completed'])
  })

  it.each([
    ['complete', 'completed'],
    ['release', 'released'],
  ] as const)(
    'a lease that is over (%s) refuses what the handler left running',
    async (settle, reason) => {
      let kept: HeldLease | undefined
      await settled(
        run({ settle }, (lease) => {
          kept = lease
        }),
      )
      expect(kept?.remainingMs()).toBe(0)
      expect(kept?.assertHeld).toThrow(expect.objectContaining({ code: 'lease_lost', reason }))
      const sent = kept?.fetch('http://destination.example/')
      await expect(sent).rejects.toMatchObject({ reason })
      // Nobody took it away: what listens for a loss is not called.
      expect(kept?.signal.aborted).toBe(false)
      expect(Object.isFrozen(kept)).toBe(true)
    },
  )
})
