import { describe, expect, it } from 'vitest'
import { StoreUnavailableError } from 'writefence'
import { Turns } from '../../src/storage/turns.ts'

/** What happens, in order; `step` is a unit of two steps with a wait between them. */
function stage() {
  const turns = new Turns('SQL', 60_000)
  const seen: string[] = []
  const step = (name: string) => async () => {
    seen.push(`${name} begins`)
    await new Promise((resolve) => setImmediate(resolve))
    seen.push(`${name} ends`)
    return name
  }
  return { turns, seen, step, tx: {} }
}

describe('units on one transaction', () => {
  it('do not overlap', async () => {
    const { turns, seen, step, tx } = stage()
    expect(await Promise.all([turns.take(tx, step('a')), turns.take(tx, step('b'))])).toEqual([
      'a',
      'b',
    ])
    expect(seen).toEqual(['a begins', 'a ends', 'b begins', 'b ends'])
  })

  it('go on after one that failed', async () => {
    const { turns, step, tx } = stage()
    const failed = turns.take(tx, () => Promise.reject(new RangeError('mine')))
    const next = turns.take(tx, step('b'))
    await expect(failed).rejects.toThrow('mine')
    expect(await next).toBe('b')
  })

  it('overlap where the transactions are two', async () => {
    const { turns, seen, step } = stage()
    await Promise.all([turns.take({}, step('a')), turns.take({}, step('b'))])
    expect(seen).toEqual(['a begins', 'b begins', 'a ends', 'b ends'])
  })
})

describe('a unit whose turn does not come', () => {
  it('is withdrawn, so that an effect that waits for it goes on, and is never run', async () => {
    const turns = new Turns('SQL', 20)
    const tx = {}
    const seen: string[] = []
    // Somebody who calls for others: nothing shows on whose behalf.
    const queue: (() => void)[] = []
    const dispatcher = setInterval(() => queue.shift()?.(), 1)
    const effect = () =>
      new Promise<unknown>((resolve) => {
        const unit = () => turns.take(tx, async () => seen.push('inner'))
        queue.push(() => resolve(unit().catch((error: unknown) => error)))
      })
    const answer = await turns.take(tx, () => turns.inside(tx, effect))
    clearInterval(dispatcher)
    expect(answer).toBeInstanceOf(StoreUnavailableError)
    expect(answer).toMatchObject({
      message: expect.stringContaining('SQL: the transaction was busy with another unit for 20 ms'),
    })
    await turns.take(tx, async () => seen.push('next'))
    expect(seen).toEqual(['next'])
  })
})

describe('units that an effect starts on its own transaction', () => {
  it('do not wait for the unit whose effect it is, and do not overlap', async () => {
    const { turns, seen, step, tx } = stage()
    await turns.take(tx, () =>
      turns.inside(tx, () => Promise.all([turns.take(tx, step('a')), turns.take(tx, step('b'))])),
    )
    expect(seen).toEqual(['a begins', 'a ends', 'b begins', 'b ends'])
  })

  it('do so by way of an effect on another transaction too', async () => {
    const { turns, step, tx } = stage()
    const other = {}
    const inner = () => turns.inside(other, () => turns.take(tx, step('a')))
    expect(await turns.take(tx, () => turns.inside(tx, inner))).toBe('a')
  })

  it('hold up units from outside until the effect has ended', async () => {
    const { turns, seen, step, tx } = stage()
    const outer = turns.take(tx, () => turns.inside(tx, step('effect')))
    await Promise.all([outer, turns.take(tx, step('next'))])
    expect(seen).toEqual(['effect begins', 'effect ends', 'next begins', 'next ends'])
  })

  it('are waited for, those too that they start themselves, if it throws as well', async () => {
    const { turns, seen, step, tx } = stage()
    const effect = async () => {
      void turns.take(tx, step('a')).then(() => void 0)
      void turns.take(tx, async () => {
        await step('b')()
      })
      throw new RangeError('mine')
    }
    await expect(turns.inside(tx, effect)).rejects.toThrow('mine')
    expect(seen).toEqual(['a begins', 'a ends', 'b begins', 'b ends'])
  })

  it('are refused once the effect has ended', async () => {
    const { turns, seen, step, tx } = stage()
    let late: Promise<unknown> = Promise.resolve()
    let goOn = () => {}
    await turns.inside(tx, () => {
      const waits = new Promise<void>((resolve) => {
        goOn = resolve
      })
      late = waits.then(() => turns.take(tx, step('late')))
    })
    goOn()
    await expect(late).rejects.toThrow(TypeError)
    expect(seen).toEqual([])
  })

  it('may follow once more outside of it', async () => {
    const { turns, step, tx } = stage()
    await turns.inside(tx, step('effect'))
    expect(await turns.take(tx, step('next'))).toBe('next')
  })
})
