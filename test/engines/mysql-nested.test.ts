import type { PoolConnection } from 'mysql2/promise'
import { beforeEach, expect, it } from 'vitest'
import { WriteGuard, type WriteIntent } from 'writefence'
import { describeEngine } from './engine.ts'
import { MysqlBench } from './mysql-bench.ts'

const bench = await MysqlBench.open('nested')

function intent(generation: number, operationId?: string, jobId = 'job'): WriteIntent {
  return { token: { jobId, generation, leaseId: 'a' }, operationId }
}

const append = (text: string) => (tx: PoolConnection) => bench.append(tx, text)
const boom = new Error('boom')

describeEngine('MariaDB, writes inside writes', bench.problem, () => {
  let guard: WriteGuard<PoolConnection, 'async'>

  beforeEach(async () => {
    await bench.empty()
    guard = new WriteGuard(bench.fences())
  })

  it('an inner write that throws is undone alone', async () => {
    await guard.write(intent(1, 'outer'), async (tx) => {
      await append('outer')(tx)
      await guard.within(tx, intent(1, 'good', 'other'), append('inner'))
      const inner = guard.within(tx, intent(3, 'bad', 'other'), async () => {
        await append('half')(tx)
        throw boom
      })
      await expect(inner).rejects.toBe(boom)
      await append('end')(tx)
    })
    expect(await bench.log()).toEqual(['outer', 'inner', 'end'])
    expect(await guard.inspect('other')).toMatchObject({ highestGeneration: 3 })
  })

  it('a joined write may stand inside a joined write', async () => {
    const outcome = await bench.transaction((tx) =>
      guard.within(tx, intent(1, 'outer'), () =>
        guard.within(tx, intent(1, 'inner'), append('inner')).then(() => 'done'),
      ),
    )
    expect(outcome).toMatchObject({ status: 'applied', result: 'done' })
    expect(await bench.log()).toEqual(['inner'])
  })

  it('an inner write that nobody waits for is a part of the outer one', async () => {
    let inner: Promise<unknown> | undefined
    await guard.write(intent(1, 'outer'), async (tx) => {
      inner = guard.within(tx, intent(1, 'inner', 'other'), append('inner'))
    })
    expect(await bench.log()).toEqual(['inner'])
    expect(await inner).toMatchObject({ status: 'applied' })
  })

  it('an outer one that throws takes the inner ones along', async () => {
    const outer = guard.write(intent(1, 'outer'), async (tx) => {
      await guard.within(tx, intent(1, 'inner', 'other'), append('inner'))
      throw boom
    })
    await expect(outer).rejects.toBe(boom)
    expect(await guard.inspect('other')).toBeUndefined()
    expect(await bench.log()).toEqual([])
  })

  it('several at once in one transaction do not undo each other', async () => {
    const ended = await bench.transaction((tx) =>
      Promise.allSettled(
        Array.from({ length: 6 }, (_, i) =>
          guard.within(tx, intent(1, `op ${i}`), async () => {
            await append(String(i))(tx)
            if (i % 2 === 1) throw boom
          }),
        ),
      ),
    )
    expect(ended.map((one) => one.status === 'fulfilled')).toEqual([
      ...[true, false, true, false, true, false],
    ])
    expect(await bench.log()).toEqual(['0', '2', '4'])
  })
})
