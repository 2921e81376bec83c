import { describe, expect, it } from 'vitest'
import { retry } from '../../src/storage/retry.ts'

const undone = new Error('undone')
const isUndone = (error: unknown) => error === undone

/** A run that is undone so many times, and what it was told each time. */
function undoneTimes(times: number) {
  const told: boolean[] = []
  const run = async (last: boolean) => {
    told.push(last)
    if (told.length <= times) throw undone
    return 'done'
  }
  return { run, told }
}

describe('a unit that the engine has undone', () => {
  it('is run again until it is done', async () => {
    const { run, told } = undoneTimes(2)
    expect(await retry(run, isUndone)).toBe('done')
    expect(told).toEqual([false, false, false])
  })

  it('is run a bounded number of times, the last of which is told so', async () => {
    const { run, told } = undoneTimes(Number.POSITIVE_INFINITY)
    await expect(retry(run, isUndone)).rejects.toBe(undone)
    expect(told).toEqual([false, false, false, false, false, true])
  })

  it('is run as often as it says', async () => {
    const { run, told } = undoneTimes(Number.POSITIVE_INFINITY)
    await expect(retry(run, isUndone, 2)).rejects.toBe(undone)
    expect(told).toEqual([false, true])
  })

  it('is not run again after any other error', async () => {
    const { told } = undoneTimes(0)
    const other = new Error('other')
    const run = async (last: boolean) => {
      told.push(last)
      throw other
    }
    await expect(retry(run, isUndone)).rejects.toBe(other)
    expect(told).toEqual([false])
  })
})
