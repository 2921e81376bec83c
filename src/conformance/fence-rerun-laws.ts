/** What follows an outcome that is not known: finding out, or running again (rule 14). */

import assert from 'node:assert/strict'
import { AttemptSupersededError, NotAppliedError } from '../errors.ts'
import type { Finding } from '../guard/effect.ts'
import { type Destination, failure, intent, law, refused } from './fence-destination.ts'
import type { FenceStoreLaw } from './fence-store-context.ts'

const rerun = { onUnknown: 'rerun' } as const

/** An effect that must not run. */
async function never(): Promise<never> {
  assert.fail('the effect ran where it must not')
}

/** Leaves `x` in each of the ways in which an outcome is not known, each in a job of its own. */
async function unknownJobs(d: Destination): Promise<string[]> {
  const thrown = await d.begin(intent(1, 'x', { jobId: 'thrown' }))
  thrown.fail(new Error('lost the connection'))
  await failure(thrown.outcome)
  await d.begin(intent(1, 'x', { jobId: 'overdue' }), { deadlineMs: 10 })
  d.advanceClock(10)
  return ['thrown', 'overdue']
}

/** A resolver that answers with the finding and counts how often it was asked. */
function answering<R>(finding: Finding<R>) {
  const asked: string[] = []
  const onUnknown = async ({ operationId }: { operationId: string }) => {
    asked.push(operationId)
    return finding
  }
  return { asked, onUnknown }
}

const rerunning: readonly FenceStoreLaw[] = [
  law("'rerun' runs an unknown operation again, under its own generation", async (d) => {
    for (const jobId of await unknownJobs(d)) {
      const again = await d.guard.effect(intent(2, 'x', { jobId }), async () => 'again', rerun)
      assert.deepEqual([again.status, again.appliedGeneration], ['applied', 2])
      const replayed = await d.guard.effect(intent(2, 'x', { jobId }), never)
      assert.deepEqual([replayed.result, replayed.appliedGeneration], ['again', 2])
    }
  }),

  law('what is run again beside an overdue attempt goes on holding others back', async (d) => {
    await d.begin(intent(1, 'x'), { deadlineMs: 10 })
    d.advanceClock(10)
    // That these have ended says nothing of the first: it may land after all.
    for (const error of [new Error('lost the connection'), new NotAppliedError()]) {
      const again = await d.begin(intent(2, 'x'), rerun)
      await refused(d.guard.write(intent(2, 'y'), d.appends('y')), 'in_flight')
      const { older } = await d.guard.advance(intent(2).token)
      assert.deepEqual(older, { inFlight: 1, overdue: 0 })
      again.fail(error)
      assert.equal(await failure(again.outcome), error)
      await refused(d.guard.write(intent(2, 'y'), d.appends('y')), 'outcome_unknown')
    }
    await d.guard.effect(intent(2, 'x'), async () => 'third', rerun)
    await d.applies(intent(2, 'y'))
  }),

  law('a rerun that did not take place says nothing of the attempt before it', async (d) => {
    const lost = await d.begin(intent(1, 'x'))
    lost.fail(new Error('lost the connection'))
    await failure(lost.outcome)
    const again = await d.begin(intent(2, 'x'), rerun)
    again.fail(new NotAppliedError())
    await failure(again.outcome)
    // The first may have taken place: nobody is told that it has not, or runs it as if it were new.
    await refused(d.guard.effect(intent(1, 'x'), never), 'stale', { operationApplied: undefined })
    await refused(d.guard.effect(intent(2, 'x'), never), 'outcome_unknown')
    // Both have ended: they hold nobody back.
    await d.applies(intent(3, 'y'))
    const third = await d.guard.effect(intent(3, 'x'), async () => 'third', rerun)
    assert.deepEqual([third.status, third.result], ['applied', 'third'])
  }),

  law('what a resolver has not found, and did not take place again, is new', async (d) => {
    const lost = await d.begin(intent(1, 'x'))
    lost.fail(new Error('lost the connection'))
    await failure(lost.outcome)
    const { onUnknown } = answering({ status: 'not_applied' })
    const again = await d.begin(intent(2, 'x'), { onUnknown })
    again.fail(new NotAppliedError())
    await failure(again.outcome)
    const third = await d.guard.effect(intent(2, 'x'), async () => 'third')
    assert.deepEqual([third.status, third.result], ['applied', 'third'])
  }),

  law('nobody waits for his own overdue attempt, whatever runs beside it', async (d) => {
    await d.begin(intent(1, 'x'), { deadlineMs: 10 })
    d.advanceClock(10)
    // Of the same generation as the next run of `x`, which therefore does not wait for it.
    await d.begin(intent(2, 'y'), { afterOverdue: 'proceed' })
    const again = await d.guard.effect(intent(2, 'x'), async () => 'again', rerun)
    assert.equal(again.status, 'applied')
  }),

  law("'rerun' does not touch an operation in flight", async (d) => {
    const running = await d.begin(intent(1, 'x'))
    await refused(d.guard.effect(intent(1, 'x'), never, rerun), 'in_flight')
    running.finish('first')
    assert.equal((await running.outcome).result, 'first')
  }),

  law('an attempt that another has taken over changes nothing any more', async (d) => {
    for (const end of ['finish', 'fail'] as const) {
      const at = { jobId: end }
      const first = await d.begin(intent(1, 'x', at), { deadlineMs: 10 })
      d.advanceClock(10)
      const second = await d.begin(intent(1, 'x', at), rerun)
      first[end](new Error('too late'))
      const error = await failure(first.outcome)
      assert.equal(error instanceof AttemptSupersededError, end === 'finish')
      await refused(d.guard.effect(intent(1, 'x', at), never), 'in_flight')
      second.finish('second')
      assert.equal((await second.outcome).result, 'second')
      assert.equal((await d.guard.effect(intent(1, 'x', at), never)).result, 'second')
    }
  }),

  law('of two that run an unknown operation again at once, one does', async (d) => {
    const other = await d.open()
    for (const jobId of await unknownJobs(d)) {
      let runs = 0
      const calls = [d.guard, other, d.guard, other].map((guard) =>
        guard.effect(
          intent(1, 'x', { jobId }),
          async () => {
            runs += 1
            return 'again'
          },
          rerun,
        ),
      )
      const ended = await Promise.allSettled(calls)
      assert.equal(runs, 1)
      for (const one of ended) {
        if (one.status === 'rejected') assert.equal(one.reason.code, 'in_flight')
      }
    }
  }),

  law('a rerun passes the whole verdict again', async (d) => {
    const run = (generation: number, jobId: string, leaseId = 'a') =>
      d.guard.effect(intent(generation, 'x', { jobId, leaseId }), never, rerun)
    for (const jobId of await unknownJobs(d)) {
      await d.begin(intent(1, 'older', { jobId }), { deadlineMs: 50 })
      await d.guard.advance(intent(2, undefined, { jobId }).token)
      await refused(run(1, jobId), 'stale', { operationApplied: undefined })
      await refused(run(2, jobId, 'b'), 'conflict')
      await refused(run(2, jobId), 'in_flight', { retryAfterMs: 50 })
      await d.guard.seal(intent(2, undefined, { jobId }).token)
      await refused(run(2, jobId), 'sealed')
    }
  }),
]

const resolving: readonly FenceStoreLaw[] = [
  law('a resolver that finds the effect has its result recorded and replayed', async (d) => {
    for (const jobId of await unknownJobs(d)) {
      const { asked, onUnknown } = answering({ status: 'applied', result: 'found' })
      const found = await d.guard.effect(intent(2, 'x', { jobId }), never, { onUnknown })
      assert.deepEqual(found, {
        status: 'replayed',
        result: 'found',
        appliedGeneration: 1,
        highestGeneration: 2,
      })
      assert.deepEqual(asked, ['x'])
      assert.equal((await d.guard.effect(intent(2, 'x', { jobId }), never)).result, 'found')
    }
  }),

  law('a resolver that finds nothing has the effect run again', async (d) => {
    for (const jobId of await unknownJobs(d)) {
      const { onUnknown } = answering({ status: 'not_applied' })
      const again = await d.guard.effect(intent(2, 'x', { jobId }), async () => 'again', {
        onUnknown,
      })
      assert.deepEqual([again.status, again.result], ['applied', 'again'])
    }
  }),

  law(
    'what is run again because a resolver found nothing holds back like a first run',
    async (d) => {
      await d.begin(intent(1, 'x'), { deadlineMs: 10 })
      d.advanceClock(10)
      const { onUnknown } = answering({ status: 'not_applied' })
      const again = await d.begin(intent(2, 'x'), { onUnknown })
      await d.applies(intent(2, 'y'))
      again.fail(new Error('lost the connection'))
      await failure(again.outcome)
      await d.applies(intent(3, 'z'))
    },
  ),

  law('a resolver that does not know leaves the refusal as it was', async (d) => {
    for (const jobId of await unknownJobs(d)) {
      const { onUnknown } = answering({ status: 'unknown' })
      const call = d.guard.effect(intent(1, 'x', { jobId }), never, { onUnknown })
      await refused(call, 'outcome_unknown')
      await refused(d.guard.effect(intent(1, 'x', { jobId }), never), 'outcome_unknown')
    }
  }),

  law('a resolver is asked about an unknown outcome of its own operation only', async (d) => {
    const { asked, onUnknown } = answering({ status: 'not_applied' })
    const call = (generation: number, operationId: string) =>
      d.guard.effect(intent(generation, operationId), async () => 'ran', { onUnknown })
    await d.applies(intent(1, 'done'))
    await d.begin(intent(1, 'running'), { deadlineMs: 10 })
    await call(1, 'fresh')
    await call(1, 'done')
    await refused(call(1, 'running'), 'in_flight')
    d.advanceClock(10)
    await refused(call(2, 'newer'), 'outcome_unknown')
    await refused(call(1, 'fresh'), 'stale')
    assert.deepEqual(asked, [])
  }),

  law('what happens while a resolver asks counts', async (d) => {
    for (const [code, verb] of [
      ['stale', 'advance'],
      ['sealed', 'seal'],
    ] as const) {
      const at = { jobId: code }
      const unknown = await d.begin(intent(1, 'x', at))
      unknown.fail(new Error('lost the connection'))
      await failure(unknown.outcome)
      const onUnknown = async (): Promise<Finding<never>> => {
        await d.guard[verb](intent(verb === 'seal' ? 1 : 2, undefined, at).token)
        return { status: 'not_applied' }
      }
      await refused(d.guard.effect(intent(1, 'x', at), never, { onUnknown }), code)
    }
  }),

  law('an attempt that was taken over while a resolver asked is not taken again', async (d) => {
    for (const jobId of await unknownJobs(d)) {
      const at = intent(1, 'x', { jobId })
      const findings: Finding<unknown>[] = [
        { status: 'not_applied' },
        { status: 'applied', result: 'wrong' },
      ]
      const second = await d.begin(at, { ...rerun, deadlineMs: 10 })
      d.advanceClock(10)
      for (const finding of findings) {
        const onUnknown = async () => {
          await d.begin(at, { ...rerun, deadlineMs: 10 })
          return finding
        }
        await refused(d.guard.effect(at, never, { onUnknown }), 'in_flight')
        d.advanceClock(10)
        await refused(d.guard.effect(at, never), 'outcome_unknown')
      }
      second.finish('lost')
      assert.ok((await failure(second.outcome)) instanceof AttemptSupersededError)
    }
  }),
]

export const fenceRerunLaws: readonly FenceStoreLaw[] = [...rerunning, ...resolving]
