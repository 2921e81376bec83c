import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { JobChanged, RedisUnits } from '../../../src/storage/redis/redis-units.ts'

const key = (jobId: string) => ({ scope: '', jobId })

/** A unit that runs until it is told to end. */
function held() {
  let end = () => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  return { unit: () => ended, end }
}

describe('the turns of units on Redis', () => {
  it('units of one job run one after the other, those of different jobs side by side', async () => {
    const units = new RedisUnits(5000)
    const log: string[] = []
    const first = held()
    const slow = units.run(key('a'), async () => {
      log.push('a begins')
      await first.unit()
      log.push('a ends')
    })
    const next = units.run(key('a'), async () => void log.push('a again'))
    await units.run(key('b'), async () => void log.push('b'))
    expect(log).toEqual(['a begins', 'b'])
    first.end()
    await Promise.all([slow, next])
    expect(log).toEqual(['a begins', 'b', 'a ends', 'a again'])
  })

  it('who keeps his turn too long loses it, and the next one does not wait for ever', async () => {
    const units = new RedisUnits(5000, 10)
    const hung = held()
    const first = units.run(key('job'), hung.unit)
    expect(await units.run(key('job'), async () => 'second')).toBe('second')
    hung.end()
    await first
  })

  it('who does not get his turn in time is withdrawn, and never runs', async () => {
    const units = new RedisUnits(10, 5000)
    const hung = held()
    const first = units.run(key('job'), hung.unit)
    let ran = false
    const second = units.run(key('job'), async () => {
      ran = true
    })
    await expect(second).rejects.toMatchObject({ code: 'store_unavailable' })
    hung.end()
    await first
    await turn()
    expect(ran).toBe(false)
    expect(await units.run(key('job'), async () => 'third')).toBe('third')
  })

  it('a unit whose job has changed starts over until it has not', async () => {
    const units = new RedisUnits(5000)
    let runs = 0
    const value = await units.run(key('job'), async () => {
      runs += 1
      if (runs < 4) throw new JobChanged()
      return runs
    })
    expect(value).toBe(4)
  })

  it('an error of another kind is thrown as it is, at once', async () => {
    const units = new RedisUnits(5000)
    const boom = new Error('boom')
    let runs = 0
    const failed = units.run(key('job'), async () => {
      runs += 1
      throw boom
    })
    await expect(failed).rejects.toBe(boom)
    expect(runs).toBe(1)
  })
})
