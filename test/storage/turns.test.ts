import { once } from 'node:events'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { Turns } from '../../src/storage/turns.ts'

/** What happens, in order; `step` is a unit of two steps with a wait between them. */
function stage() {
  const turns = new Turns()
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

describe('a unit that waits for long', () => {
  const warned = () => once(process, 'warning').then(([warning]) => warning)

  it('is told of, and waits on: what is ahead of it may take its time', async () => {
    const turns = new Turns(5)
    const tx = {}
    const warning = warned()
    const [first] = [turns.take(tx, () => warning)]
    expect(await turns.take(tx, async () => 'second')).toBe('second')
    expect(await first).toMatchObject({ code: 'WRITEFENCE_WAITING' })
  })

  it('is told of once it has begun no more', async () => {
    const turns = new Turns(5)
    const told = vi.fn()
    process.on('warning', told)
    onTestFinished(() => void process.off('warning', told))
    await turns.take({}, () => new Promise((resolve) => setTimeout(resolve, 20)))
    expect(told).not.toHaveBeenCalled()
  })
})

describe('how deep in effects on its transaction a unit is', () => {
  it('counts those of other stores, and none on other transactions', async () => {
    const [one, other] = [new Turns(), new Turns()]
    const [tx, elsewhere] = [{}, {}]
    expect(one.depth(tx)).toBe(0)
    await one.inside(tx, () =>
      other.take(tx, () =>
        other.inside(tx, async () => {
          expect([one.depth(tx), other.depth(tx), one.depth(elsewhere)]).toEqual([2, 2, 0])
        }),
      ),
    )
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
