/** Writes: the effect, its record and the fence in one transaction (rules 12 and 13). */

import assert from 'node:assert/strict'
import { after, failure, intent, law, refused } from './fence-destination.ts'
import type { FenceStoreLaw } from './fence-store-context.ts'

const boom = new Error('boom')

const atomicity: readonly FenceStoreLaw[] = [
  law('an effect that throws leaves no effect and no record, and may be tried again', async (d) => {
    const error = await failure(d.guard.write(intent(1, 'x'), d.throws('half', boom)))
    assert.equal(error, boom)
    assert.deepEqual(await d.log(), [])
    const outcome = await d.guard.write(intent(1, 'x'), d.appends('whole', 'r'))
    assert.deepEqual(outcome, {
      status: 'applied',
      result: 'r',
      appliedGeneration: 1,
      highestGeneration: 1,
    })
    assert.deepEqual(await d.log(), ['whole'])
  }),

  law('R52: a generation whose effect throws fences off older ones after a restart', async (d) => {
    assert.equal(await failure(d.guard.write(intent(5, 'x'), d.throws('half', boom))), boom)
    await d.reopenStore()
    const late = d.guard.write(intent(4, 'y'), d.appends('late'))
    await refused(late, 'stale', { highestGeneration: 5, operationApplied: false })
    assert.deepEqual(await d.log(), [])
  }),

  law('R52: a generation that is refused fences off older ones after a restart', async (d) => {
    await d.applies(intent(1, 'x', { fingerprint: 'f' }))
    const other = d.guard.write(intent(3, 'x', { fingerprint: 'g' }), d.appends('other'))
    await refused(other, 'mismatch', { highestGeneration: 3 })
    await d.guard.seal(intent(3).token)
    await refused(d.guard.write(intent(5, 'y'), d.appends('sealed')), 'sealed')
    await d.reopenStore()
    await refused(d.guard.write(intent(4, 'z'), d.appends('late')), 'stale')
    assert.equal((await d.guard.inspect('job'))?.highestGeneration, 5)
  }),

  law('one of many that throws spoils only itself', async (d) => {
    const calls = Array.from({ length: 20 }, (_, i) => {
      const text = String(i).padStart(2, '0')
      const effect = i === 7 ? d.throws(text, boom) : d.appends(text, i)
      return d.guard.write(intent(1, text, { jobId: text }), effect)
    })
    const ended = await Promise.allSettled(calls)
    assert.deepEqual(ended[7], { status: 'rejected', reason: boom })
    const results = ended.map((one) => (one.status === 'fulfilled' ? one.value.result : 'none'))
    assert.deepEqual(
      results,
      ended.map((_, i) => (i === 7 ? 'none' : i)),
    )
    const texts = ended.flatMap((_, i) => (i === 7 ? [] : [String(i).padStart(2, '0')]))
    assert.deepEqual((await d.log()).toSorted(), texts)
  }),

  law('a result that its codec cannot spell undoes the write', async (d) => {
    const error = await failure(d.guard.write(intent(1, 'x'), d.appends('half', new Date(0))))
    assert.ok(error instanceof TypeError)
    assert.deepEqual(await d.log(), [])
    await d.applies(intent(1, 'x'), 'whole')
  }),

  law('a write without an operation id takes place each time', async (d) => {
    for (let i = 0; i < 3; i += 1) await d.applies(intent(1), 'again')
    assert.deepEqual(await d.log(), ['again', 'again', 'again'])
  }),
]

const history: readonly FenceStoreLaw[] = [
  law('a write that is only reported takes place beside its record, which stays', async (d) => {
    await d.applies(intent(1, 'x', { fingerprint: 'f' }), 'first')
    const report = intent(1, 'x', { fingerprint: 'g', mode: 'report' })
    assert.equal((await d.guard.write(report, d.appends('reported', 'r'))).status, 'applied')
    assert.deepEqual(await d.log(), ['first', 'reported'])
    const again = await d.guard.write(intent(1, 'x', { fingerprint: 'f' }), d.appends('twice'))
    assert.deepEqual([again.status, again.result], ['replayed', 'first'])
  }),

  law('R50: what a later generation stored is not overwritten by an earlier one', async (d) => {
    await d.applies(intent(2), 'of 2')
    await refused(d.guard.write(intent(1), d.appends('of 1')), 'stale', { highestGeneration: 2 })
    assert.deepEqual(await d.log(), ['of 2'])
  }),

  law('R53: accepted generations never fall, whatever order they come in', async (d) => {
    const guards = [d.guard, await d.open(), await d.open()]
    const generations = shuffled(Array.from({ length: 300 }, (_, i) => (i % 20) + 1))
    const calls = generations.map((generation, i) => {
      const guard = guards[i % guards.length] ?? d.guard
      const text = String(generation).padStart(2, '0')
      return guard.write(intent(generation, `op ${i}`), d.appends(text)).then(
        () => text,
        (error: { code?: unknown }) => assert.equal(error.code, 'stale'),
      )
    })
    const accepted = (await Promise.all(calls)).filter((text) => text !== undefined)
    const log = await d.log()
    assert.deepEqual(log, log.toSorted())
    assert.deepEqual(accepted.toSorted(), log)
    assert.equal((await d.guard.inspect('job'))?.highestGeneration, 20)
  }),

  law('R70, R104: one operation sent many times at once takes place once', async (d) => {
    const guards = [d.guard, await d.open()]
    const outcomes = await Promise.all(
      Array.from({ length: 60 }, (_, i) => {
        const guard = guards[i % guards.length] ?? d.guard
        return guard.write(intent(1, 'pay'), d.appends('paid', { by: 1 }))
      }),
    )
    assert.deepEqual(await d.log(), ['paid'])
    assert.equal(outcomes.filter((one) => one.status === 'applied').length, 1)
    for (const one of outcomes) assert.deepEqual(one.result, { by: 1 })
  }),

  law('R112: of two that raise the first fence at once both learn the truth', async (d) => {
    const [one, two] = [d.guard, await d.open()]
    for (let round = 0; round < 20; round += 1) {
      const jobId = `first ${round}`
      const [a, b] = await Promise.allSettled([
        one.write(intent(1, 'a', { jobId, leaseId: 'a' }), d.appends(`${jobId} a`)),
        two.write(intent(1, 'b', { jobId, leaseId: 'b' }), d.appends(`${jobId} b`)),
      ])
      assert.notEqual(a.status, b.status)
      const lost = a.status === 'rejected' ? a.reason : b.status === 'rejected' ? b.reason : {}
      assert.equal(lost.code, 'conflict')
      const won = (await d.log()).filter((text) => text.startsWith(`${jobId} `))
      assert.deepEqual(won, [`${jobId} ${a.status === 'fulfilled' ? 'a' : 'b'}`])
    }
  }),

  law('R83: an operation keeps its request and its result after a restart', async (d) => {
    await d.guard.write(intent(3, 'x', { fingerprint: 'f' }), d.appends('once', 'r'))
    await d.reopenStore()
    const other = d.guard.write(intent(3, 'x', { fingerprint: 'g' }), d.appends('twice'))
    await refused(other, 'mismatch', { operationApplied: false })
    const bare = d.guard.write(intent(3, 'x'), d.appends('twice'))
    await refused(bare, 'mismatch')
    const again = await d.guard.write(intent(4, 'x', { fingerprint: 'f' }), d.appends('twice'))
    assert.deepEqual(again, {
      status: 'replayed',
      result: 'r',
      appliedGeneration: 3,
      highestGeneration: 4,
    })
    assert.deepEqual(await d.log(), ['once'])
  }),

  law('a result comes back from its record as it was', async (d) => {
    const nested = { list: [1, 'two', null, true, { deep: [[]] }], 'ключ 🔑': '\u0000\ud800\u2028' }
    const results = [undefined, null, false, 0, '', 'null', 'undefined', [], nested, -1.5e300]
    results.push(JSON.parse('{"__proto__":{"x":1},"constructor":2}'), 'x'.repeat(1_000_000))
    for (const [i, result] of results.entries()) {
      const first = await d.guard.write(intent(1, `op ${i}`), d.appends(`effect ${i}`, result))
      const again = await d.guard.write(intent(1, `op ${i}`), d.appends('twice', 'other'))
      assert.equal(again.status, 'replayed')
      assert.deepEqual([first.result, again.result], [result, result])
    }
    assert.equal((await d.log()).length, results.length)
  }),
]

const joined: readonly FenceStoreLaw[] = [
  law('within: what the transaction commits is the fence, the record and the effect', async (d) => {
    const outcome = await d.transaction((tx) =>
      d.guard.within(tx, intent(3, 'x'), d.appends('joined', 'r')),
    )
    assert.equal(outcome.status, 'applied')
    await d.reopenStore()
    await refused(d.guard.write(intent(2), d.appends('late')), 'stale', { highestGeneration: 3 })
    const again = await d.guard.write(intent(3, 'x'), d.appends('twice'))
    assert.deepEqual([again.status, again.result], ['replayed', 'r'])
    assert.deepEqual(await d.log(), ['joined'])
  }),

  law('within: a rollback forgets the fence, the record and the effect', async (d) => {
    await d.applies(intent(1, 'w'), 'before')
    const rolledBack = d.transaction((tx) =>
      after(d.guard.within(tx, intent(3, 'x'), d.appends('joined')), () => {
        throw boom
      }),
    )
    assert.equal(await failure(rolledBack), boom)
    assert.equal((await d.guard.inspect('job'))?.highestGeneration, 1)
    await d.applies(intent(2, 'x'), 'after')
    assert.deepEqual(await d.log(), ['before', 'after'])
  }),

  law('within: a refusal spoils nothing else in the transaction', async (d) => {
    await d.applies(intent(5, 'x'), 'before')
    await d.transaction((tx) =>
      after(
        caught(() => d.guard.within(tx, intent(4, 'y'), d.appends('late'))),
        () => d.guard.within(tx, intent(5, 'z'), d.appends('good')),
      ),
    )
    assert.deepEqual(await d.log(), ['before', 'good'])
    const late = d.transaction((tx) => d.guard.within(tx, intent(4, 'y'), d.appends('late')))
    await refused(late, 'stale', { highestGeneration: 5 })
  }),

  law('within: an effect that throws is undone, the fence stays if the user commits', async (d) => {
    const failed = { error: undefined as unknown }
    await d.transaction((tx) =>
      after(
        caught(() => d.guard.within(tx, intent(5, 'x'), d.throws('half', boom)), failed),
        () => {},
      ),
    )
    assert.equal(failed.error, boom)
    await refused(d.guard.write(intent(4), d.appends('late')), 'stale')
    await d.applies(intent(5, 'x'), 'whole')
    assert.deepEqual(await d.log(), ['whole'])
  }),

  law('within: two writes in one transaction see each other', async (d) => {
    await d.transaction((tx) =>
      after(d.guard.within(tx, intent(1, 'x'), d.appends('once', 1)), () =>
        after(d.guard.within(tx, intent(2, 'x'), d.appends('twice', 2)), (outcome) =>
          assert.deepEqual(outcome, {
            status: 'replayed',
            result: 1,
            appliedGeneration: 1,
            highestGeneration: 2,
          }),
        ),
      ),
    )
    assert.deepEqual(await d.log(), ['once'])
  }),
]

export const fenceWriteLaws: readonly FenceStoreLaw[] = [...atomicity, ...history, ...joined]

/** Runs the call and drops its error, or keeps it in `failed`. */
function caught(call: () => unknown, failed: { error?: unknown } = {}): unknown {
  const keep = (error: unknown) => {
    failed.error = error
  }
  try {
    const value = call()
    return value instanceof Promise ? value.catch(keep) : value
  } catch (error) {
    return keep(error)
  }
}

/** The same every time, so that a failure can be repeated. */
function shuffled<T>(items: readonly T[]): T[] {
  let state = 1
  const keyed = items.map((item) => {
    state = (state * 48271) % 2147483647
    return { item, key: state }
  })
  return keyed.toSorted((a, b) => a.key - b.key).map(({ item }) => item)
}
