import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { JobTurns } from '../../src/storage/job-turns.ts'

const key = (jobId: string, scope = '') => ({ scope, jobId })

/** A call that runs until it is told to end. */
function held() {
  let end = () => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  return { call: () => ended, end }
}

describe('the turns of calls on one job', () => {
  it('two of one job run at once, in their order, and those of others beside them', async () => {
    const turns = new JobTurns('Redis', 5000)
    const log: string[] = []
    const calls = [held(), held(), held(), held()].map((one, i) => {
      const run = async () => {
        log.push(`${i} begins`)
        await one.call()
        log.push(`${i} ends`)
      }
      return { end: one.end, done: turns.take(key('a'), run) }
    })
    await turns.take(key('b'), async () => void log.push('b'))
    await turns.take(key('a', 's'), async () => void log.push('a of s'))
    expect(log).toEqual(['0 begins', '1 begins', 'b', 'a of s'])
    log.length = 0
    for (const { end, done } of [1, 0, 2, 3].map((i) => calls[i] ?? expect.fail())) {
      end()
      await done
      await turn()
    }
    expect(log).toEqual(['1 ends', '2 begins', '0 ends', '3 begins', '2 ends', '3 ends'])
  })

  it('who keeps his turn too long loses it, and the next one does not wait for ever', async () => {
    const turns = new JobTurns('Redis', 5000, { longestTurnMs: 10 })
    const hung = [held(), held(), held()]
    const first = hung.map(({ call }) => turns.take(key('job'), call))
    expect(await turns.take(key('job'), async () => 'next')).toBe('next')
    for (const { end } of hung) end()
    await Promise.all(first)
  })

  it('a turn that was lost is not passed on again when its call ends', async () => {
    const turns = new JobTurns('Redis', 5000, { longestTurnMs: 10 })
    const hung = [held(), held(), held(), held()]
    const slow = hung.map(({ call }) => turns.take(key('job'), call))
    // All four have begun, and lost their turns, once this one has had his.
    await turns.take(key('job'), async () => {})
    const late = [held(), held()].map((one) => ({ ...one, done: turns.take(key('job'), one.call) }))
    for (const { end } of hung) end()
    await Promise.all(slow)
    let ran = false
    const third = turns.take(key('job'), async () => {
      ran = true
    })
    await turn()
    expect(ran).toBe(false)
    for (const { end } of late) end()
    await Promise.all([...late.map(({ done }) => done), third])
  })

  it('who does not get his turn in time is withdrawn, and never runs', async () => {
    const turns = new JobTurns('Redis', 10, { longestTurnMs: 5000 })
    const hung = [held(), held()]
    const first = hung.map(({ call }) => turns.take(key('job'), call))
    let ran = false
    const third = turns.take(key('job'), async () => {
      ran = true
    })
    await expect(third).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringMatching(/^Redis: the job was busy for 10 ms/),
    })
    for (const { end } of hung) end()
    await Promise.all(first)
    await turn()
    expect(ran).toBe(false)
    expect(await turns.take(key('job'), async () => 'fourth')).toBe('fourth')
  })

  it('no turn goes to who was withdrawn: it would be lost', async () => {
    const turns = new JobTurns('Redis', 10, { longestTurnMs: 5000 })
    const hung = [held(), held()]
    const first = hung.map(({ call }) => turns.take(key('job'), call))
    const withdrawn = [1, 2].map(() => turns.take(key('job'), async () => 'never'))
    const ended = await Promise.allSettled(withdrawn)
    expect(ended.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    for (const { end } of hung) end()
    await Promise.all(first)
    expect(await turns.take(key('job'), async () => 'next')).toBe('next')
  })

  it('a call that fails passes its turn on, and its error is thrown as it is', async () => {
    const turns = new JobTurns('Redis', 5000)
    const boom = new Error('boom')
    const failing = [1, 2].map(() => turns.take(key('job'), () => Promise.reject(boom)))
    const next = turns.take(key('job'), async () => 'next')
    for (const one of failing) await expect(one).rejects.toBe(boom)
    expect(await next).toBe('next')
  })

  it('waiting counts against the time of the call', async () => {
    const turns = new JobTurns('Redis', 5000)
    const ahead = [held(), held()]
    const slow = ahead.map(({ call }) => turns.take(key('job'), call))
    const left = turns.take(key('job'), async (leftMs) => leftMs)
    const alone = await turns.take(key('other'), async (leftMs) => leftMs)
    expect(alone).toBeGreaterThan(4000)
    expect(alone).toBeLessThanOrEqual(5000)
    const from = performance.now()
    while (performance.now() - from < 2) await turn()
    for (const { end } of ahead) end()
    await Promise.all(slow)
    expect(await left).toBeLessThan(alone)
    expect(await left).toBeGreaterThan(0)
  })
})
