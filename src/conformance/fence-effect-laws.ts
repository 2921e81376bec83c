/** Effects elsewhere: reserve, run, settle, and what holds newer generations back (rule 14). */

import assert from 'node:assert/strict'
import { AttemptSupersededError, NotAppliedError } from '../errors.ts'
import type { EffectOptions } from '../guard/effect.ts'
import { type Destination, failure, intent, law, refused } from './fence-destination.ts'
import type { FenceStoreLaw } from './fence-store-context.ts'

const boom = new Error('boom')
const operation = { jobId: 'job', operationId: 'x' }

/** An effect that must not run. */
async function never(): Promise<never> {
  assert.fail('the effect ran where it must not')
}

/** Leaves operation `x` unknown: its attempt ended without proof of what happened. */
async function leaveUnknown(d: Destination, generation = 1): Promise<void> {
  const running = await d.begin(intent(generation, 'x'))
  running.fail(boom)
  assert.equal(await failure(running.outcome), boom)
}

const reserving: readonly FenceStoreLaw[] = [
  law('an effect that runs is in flight for every store on the data', async (d) => {
    await d.begin(intent(2, 'x'), { deadlineMs: 500 })
    await d.reopenStore()
    assert.equal((await d.guard.inspect('job'))?.inFlight, 1)
    const again = d.guard.effect(intent(2, 'x'), never)
    await refused(again, 'in_flight', { retryAfterMs: 500, highestGeneration: 2 })
  }),

  law('an effect that has ended is replayed with its result', async (d) => {
    const running = await d.begin(intent(2, 'x'))
    running.finish({ id: 7 })
    const outcome = { result: { id: 7 }, appliedGeneration: 2, highestGeneration: 2 }
    assert.deepEqual(await running.outcome, { status: 'applied', ...outcome })
    assert.equal((await d.guard.inspect('job'))?.inFlight, 0)
    assert.deepEqual(await d.guard.effect(intent(2, 'x'), never), {
      status: 'replayed',
      ...outcome,
    })
    const write = await d.guard.write(intent(3, 'x'), d.appends('twice'))
    assert.deepEqual(write, { status: 'replayed', ...outcome, highestGeneration: 3 })
  }),

  law(
    'R71, R74: an operation is locked until its deadline, and unknown from then on',
    async (d) => {
      await d.begin(intent(1, 'x'), { deadlineMs: 100 })
      for (const generation of [1, 2]) {
        const again = d.guard.effect(intent(generation, 'x'), never)
        await refused(again, 'in_flight', { retryAfterMs: 100 })
      }
      d.advanceClock(99)
      await refused(d.guard.effect(intent(2, 'x'), never), 'in_flight', { retryAfterMs: 1 })
      d.advanceClock(1)
      await refused(d.guard.effect(intent(2, 'x'), never), 'outcome_unknown')
      assert.equal((await d.guard.inspect('job'))?.overdue, 1)
    },
  ),

  law('R73: a deadline of zero or less is refused, and reserves nothing', async (d) => {
    for (const deadlineMs of [0, -1, 1.5, Number.NaN]) {
      const error = await failure(d.guard.effect(intent(1, 'x'), never, { deadlineMs }))
      assert.ok(error instanceof RangeError, String(error))
    }
    assert.equal(await d.guard.inspect('job'), undefined)
  }),

  law('R80: another request under the operation id is a mismatch, in flight or not', async (d) => {
    await d.begin(intent(1, 'x', { fingerprint: 'one' }))
    const two = d.guard.effect(intent(1, 'x', { fingerprint: 'two' }), never)
    await refused(two, 'mismatch')
    const one = d.guard.effect(intent(1, 'x', { fingerprint: 'one' }), never)
    await refused(one, 'in_flight')
  }),

  law('R76: refused duplicates leave the operation to the one that began it', async (d) => {
    const running = await d.begin(intent(1, 'x'))
    await refused(d.guard.effect(intent(1, 'x'), never), 'in_flight')
    await refused(d.guard.write(intent(1, 'x'), d.appends('twice')), 'in_flight')
    running.finish('r')
    assert.equal((await running.outcome).status, 'applied')
    assert.equal((await d.guard.effect(intent(1, 'x'), never)).result, 'r')
  }),

  law('of many that begin one operation at once, one runs', async (d) => {
    const other = await d.open()
    let runs = 0
    const calls = Array.from({ length: 20 }, (_, i) =>
      (i % 2 === 0 ? d.guard : other).effect(intent(1, 'x'), async () => {
        runs += 1
        return 'r'
      }),
    )
    const ended = await Promise.allSettled(calls)
    assert.equal(runs, 1)
    for (const one of ended) {
      if (one.status === 'rejected') assert.equal(one.reason.code, 'in_flight')
      else assert.equal(one.value.result, 'r')
    }
  }),
]

const ending: readonly FenceStoreLaw[] = [
  law('an effect that throws is unknown: refused, and holding nobody back', async (d) => {
    await leaveUnknown(d)
    await refused(d.guard.effect(intent(1, 'x'), never), 'outcome_unknown')
    await refused(d.guard.write(intent(2, 'x'), d.appends('twice')), 'outcome_unknown')
    assert.equal((await d.guard.inspect('job'))?.unknown, 1)
    await d.applies(intent(2, 'y'))
  }),

  law('an effect that proves that nothing happened may be tried again', async (d) => {
    const proofs: [unknown, EffectOptions<unknown>][] = [
      [new NotAppliedError(), {}],
      [boom, { errorsMean: 'not_applied' }],
    ]
    for (const [error, options] of proofs) {
      const running = await d.begin(intent(1, 'x'), options)
      running.fail(error)
      assert.equal(await failure(running.outcome), error)
      assert.deepEqual(await d.guard.unsettled(), [])
    }
    assert.equal((await d.guard.effect(intent(1, 'x'), async () => 'r')).status, 'applied')
  }),

  law('an effect without an operation id leaves no record once it is done', async (d) => {
    for (const result of ['first', 'second']) {
      const running = await d.begin(intent(1))
      assert.equal((await d.guard.inspect('job'))?.inFlight, 1)
      running.finish(result)
      const outcome = await running.outcome
      assert.deepEqual([outcome.status, outcome.result], ['applied', result])
      assert.deepEqual(await d.guard.unsettled(), [])
    }
  }),

  law('an effect without an operation id holds newer generations back all the same', async (d) => {
    const running = await d.begin(intent(1))
    await refused(d.guard.write(intent(2), d.appends('early')), 'in_flight')
    running.finish()
    await running.outcome
    await d.applies(intent(2))
  }),

  law('a late settle counts, as long as nobody else has ended the attempt', async (d) => {
    const running = await d.begin(intent(1, 'x'), { deadlineMs: 10 })
    d.advanceClock(10_000)
    await refused(d.guard.effect(intent(1, 'x'), never), 'outcome_unknown')
    running.finish('late')
    assert.equal((await running.outcome).result, 'late')
    assert.equal((await d.guard.effect(intent(2, 'x'), never)).result, 'late')
  }),

  law('an attempt that an operator has ended settles no more', async (d) => {
    for (const resolution of [
      { status: 'applied', result: 'found' },
      { status: 'not_applied' },
    ] as const) {
      for (const end of ['finish', 'fail'] as const) {
        const at = { jobId: `${resolution.status} ${end}` }
        const running = await d.begin(intent(1, 'x', at), { deadlineMs: 10 })
        d.advanceClock(10)
        const resolved = await d.guard.resolve({ ...at, operationId: 'x' }, resolution)
        assert.deepEqual(resolved, { status: 'resolved' })
        running[end](boom)
        const error = await failure(running.outcome)
        if (end === 'finish') assert.ok(error instanceof AttemptSupersededError)
        else assert.equal(error, boom)
        const again = await d.guard.effect(intent(1, 'x', at), async () => 'ran again')
        const applied = resolution.status === 'applied'
        assert.equal(again.result, applied ? 'found' : 'ran again')
      }
    }
  }),

  law('R71: resolve frees an operation, but none that is still in flight', async (d) => {
    assert.deepEqual(await d.guard.resolve(operation, { status: 'not_applied' }), {
      status: 'unknown_operation',
    })
    await d.begin(intent(1, 'x'), { deadlineMs: 10 })
    const early = d.guard.resolve(operation, { status: 'not_applied' })
    await refused(early, 'in_flight', { retryAfterMs: 10 })
    d.advanceClock(10)
    const found = { status: 'applied', result: [1] } as const
    assert.deepEqual(await d.guard.resolve(operation, found), { status: 'resolved' })
    const late = { status: 'not_applied' } as const
    assert.deepEqual(await d.guard.resolve(operation, late), { status: 'already_applied' })
    assert.deepEqual((await d.guard.write(intent(2, 'x'), d.appends('twice'))).result, [1])
  }),
]

const order: readonly FenceStoreLaw[] = [
  law('R71: an older operation holds newer generations back, and nobody else', async (d) => {
    const running = await d.begin(intent(1, 'x'), { deadlineMs: 100 })
    await d.applies(intent(1, 'y'), 'same generation')
    // With an operation of their own in flight, which is not older: there is something to look at.
    for (const other of [{ jobId: 'other' }, { scope: 'other' }]) {
      await d.begin(intent(2, 'x', other))
      await d.applies(intent(2, 'y', other), JSON.stringify(other))
    }
    const write = () => d.guard.write(intent(2, 'z'), d.appends('newer'))
    const effect = () => d.guard.effect(intent(2, 'z'), never)
    const proceed = () => d.guard.effect(intent(2, 'z'), never, { afterOverdue: 'proceed' })
    for (const call of [write, effect, proceed]) {
      await refused(call(), 'in_flight', { retryAfterMs: 100, operationApplied: false })
    }
    d.advanceClock(100)
    await refused(write(), 'outcome_unknown', { operationApplied: false })
    await refused(effect(), 'outcome_unknown')
    running.finish()
    await running.outcome
    assert.equal((await write()).status, 'applied')
  }),

  law("'proceed' passes overdue operations and waits for those in flight", async (d) => {
    await d.begin(intent(1, 'a'), { deadlineMs: 10 })
    await d.begin(intent(1, 'b'), { deadlineMs: 20 })
    d.advanceClock(10)
    const call = () => d.guard.effect(intent(2, 'c'), async () => 1, { afterOverdue: 'proceed' })
    await refused(call(), 'in_flight', { retryAfterMs: 10 })
    d.advanceClock(10)
    assert.equal((await call()).status, 'applied')
  }),

  law('it is the oldest of the operations that holds back', async (d) => {
    // Ids against the order of ages: it is not the first one of an index on them.
    await d.begin(intent(1, 'c'), { deadlineMs: 10 })
    d.advanceClock(10)
    await d.begin(intent(2, 'b'), { deadlineMs: 10, afterOverdue: 'proceed' })
    d.advanceClock(10)
    // Of the same generation as this write are two that hold nobody of it back; one is older.
    await d.begin(intent(2, 'a'), { deadlineMs: 10, afterOverdue: 'proceed' })
    await refused(d.guard.write(intent(2, 'd'), d.appends('early')), 'outcome_unknown')
    d.advanceClock(-20)
    const early = d.guard.write(intent(2, 'd'), d.appends('early'))
    await refused(early, 'in_flight', { retryAfterMs: 10 })
  }),
]

export const fenceEffectLaws: readonly FenceStoreLaw[] = [...reserving, ...ending, ...order]
