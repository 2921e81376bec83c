/** Seals, take-overs, reopening, clocks, pruning (rules 10 and 15 to 19). */

import assert from 'node:assert/strict'
import { StoreUnavailableError, WriteRefusedError } from '../errors.ts'
import { type Destination, failure, intent, law, refused } from './fence-destination.ts'
import type { FenceStoreLaw } from './fence-store-context.ts'

const HOUR_MS = 3_600_000
const { token } = intent(1)
const at = (generation: number, leaseId = 'a') => ({ ...token, generation, leaseId })

/** An effect that must not run. */
async function never(): Promise<never> {
  assert.fail('the effect ran where it must not')
}

/** Leaves operation `lost` unknown, `running` in flight until the clock is moved by 1000. */
async function leaveUnsettled(d: Destination, generation = 1): Promise<void> {
  const lost = await d.begin(intent(generation, 'lost'))
  lost.fail(new Error('lost the connection'))
  await failure(lost.outcome)
  await d.begin(intent(generation, 'overdue'), { deadlineMs: 10 })
  d.advanceClock(10)
  await d.begin(intent(generation, 'running'), { deadlineMs: 1000 })
}

const sealing: readonly FenceStoreLaw[] = [
  law('after a seal no new effect starts, of this generation or a newer one', async (d) => {
    await d.applies(intent(2, 'x'), 'before')
    assert.equal((await d.guard.seal(at(2))).sealed, true)
    await d.reopenStore()
    for (const generation of [2, 3]) {
      await refused(d.guard.write(intent(generation, 'y'), d.appends('late')), 'sealed')
      await refused(d.guard.effect(intent(generation, 'y'), never), 'sealed')
    }
    assert.deepEqual(await d.log(), ['before'])
    assert.equal((await d.guard.inspect('job'))?.sealed, true)
  }),

  law('within: after a seal no new effect joins a transaction', async (d) => {
    await d.applies(intent(2, 'x'), 'before')
    await d.guard.seal(at(2))
    for (const generation of [2, 3]) {
      const joined = d.transaction((tx) =>
        d.guard.within(tx, intent(generation, 'y'), d.appends('late')),
      )
      await refused(joined, 'sealed', { operationApplied: false })
    }
    assert.deepEqual(await d.log(), ['before'])
  }),

  law('a sealed job still replays, to a holder who is not stale', async (d) => {
    await d.guard.write(intent(2, 'x'), d.appends('once', 'r'))
    await d.guard.seal(at(2))
    for (const generation of [2, 3]) {
      const again = await d.guard.write(intent(generation, 'x'), d.appends('twice'))
      assert.deepEqual([again.status, again.result], ['replayed', 'r'])
    }
    const stale = d.guard.write(intent(2, 'x'), d.appends('twice'))
    await refused(stale, 'stale', { operationApplied: true, highestGeneration: 3 })
  }),

  law('what was in flight when the job was sealed may still settle', async (d) => {
    const running = await d.begin(intent(1, 'x'))
    assert.equal((await d.guard.seal(at(1))).inFlight, 1)
    running.finish('r')
    assert.equal((await running.outcome).status, 'applied')
    assert.equal((await d.guard.effect(intent(1, 'x'), never)).result, 'r')
  }),

  law('seal and advance report what is not settled, and whether it is older', async (d) => {
    await leaveUnsettled(d)
    const counts = { scope: '', jobId: 'job', inFlight: 1, overdue: 1, unknown: 1 }
    const mine = { ...counts, holder: 'lease', older: { inFlight: 0, overdue: 0 } }
    const advanced = await d.guard.advance(at(1))
    assert.deepEqual(advanced, { ...mine, highestGeneration: 1, sealed: false })
    const taken = await d.guard.advance(at(2))
    const older = { inFlight: 1, overdue: 1 }
    assert.deepEqual(taken, { ...mine, older, highestGeneration: 2, sealed: false })
    const sealed = await d.guard.seal(at(3))
    assert.deepEqual(sealed, { ...mine, older, highestGeneration: 3, sealed: true })
    assert.deepEqual(await d.guard.seal(at(3)), sealed)
    assert.deepEqual(await d.guard.inspect('job'), sealed)
  }),

  law('what is not settled is counted by its own generation', async (d) => {
    await d.begin(intent(1, 'a'), { deadlineMs: 10 })
    d.advanceClock(10)
    await d.begin(intent(2, 'b'), { deadlineMs: 10, afterOverdue: 'proceed' })
    await d.begin(intent(2, 'c'), { deadlineMs: 10, afterOverdue: 'proceed' })
    d.advanceClock(10)
    const { older, overdue } = await d.guard.advance(at(2))
    assert.deepEqual({ older, overdue }, { older: { inFlight: 0, overdue: 1 }, overdue: 3 })
    assert.equal((await d.guard.advance(at(3))).older.overdue, 3)
  }),

  law('seal and advance are judged like writes', async (d) => {
    await d.guard.advance(at(5))
    for (const verb of ['seal', 'advance'] as const) {
      await refused(d.guard[verb](at(4)), 'stale', { highestGeneration: 5 })
      await refused(d.guard[verb](at(5, 'b')), 'conflict', { highestGeneration: 5 })
    }
    assert.equal((await d.guard.inspect('job'))?.sealed, false)
    await d.reopenStore()
    await refused(d.guard.write(intent(4), d.appends('late')), 'stale')
    await d.guard.seal(at(6))
    assert.equal((await d.guard.advance(at(7))).sealed, true)
  }),
]

const reopening: readonly FenceStoreLaw[] = [
  law('after a reopening nothing of the old generation starts, and the next binds', async (d) => {
    await d.applies(intent(3, 'x'), 'before')
    await d.guard.seal(at(3))
    const reopened = await d.guard.reopen('job')
    const { highestGeneration, holder, sealed } = reopened ?? {}
    assert.deepEqual([highestGeneration, holder, sealed], [4, 'unbound', false])
    await d.reopenStore()
    await refused(d.guard.write(intent(3, 'y'), d.appends('late')), 'stale')
    await refused(d.guard.effect(intent(3, 'x'), never), 'stale', { operationApplied: true })
    await refused(d.guard.advance(at(3)), 'stale', { highestGeneration: 4 })
    await d.applies(intent(4, 'z', { leaseId: 'b' }), 'after')
    await refused(d.guard.write(intent(4, 'w'), d.appends('late')), 'conflict')
    assert.deepEqual(await d.log(), ['before', 'after'])
  }),

  law('repeating a reopening changes nothing', async (d) => {
    await d.guard.seal(at(3))
    const first = await d.guard.reopen('job')
    assert.deepEqual(await d.guard.reopen('job'), first)
    assert.equal(first?.highestGeneration, 4)
  }),

  law('reopening without a seal puts the present holder out', async (d) => {
    await d.applies(intent(3, 'x'), 'before')
    assert.equal((await d.guard.reopen('job'))?.highestGeneration, 4)
    await refused(d.guard.write(intent(3, 'y'), d.appends('late')), 'stale')
  }),

  law('reopening a job that was never seen changes nothing', async (d) => {
    assert.equal(await d.guard.reopen('job'), undefined)
    assert.equal(await d.guard.inspect('job'), undefined)
    await d.applies(intent(1))
  }),

  law('a token without a leaseId binds a reopened fence like any other', async (d) => {
    await d.guard.seal(at(1))
    await d.guard.reopen('job')
    await d.applies(intent(2, 'x', { leaseId: undefined }))
    await refused(d.guard.write(intent(2, 'y'), d.appends('late')), 'conflict')
    assert.equal((await d.guard.inspect('job'))?.holder, 'none')
  }),
]

const lasting: readonly FenceStoreLaw[] = [
  law('no clock turns a refusal into an acceptance', async (d) => {
    await d.applies(intent(1, 'done', { fingerprint: 'f' }), 'before')
    await leaveUnsettled(d)
    await d.guard.advance(at(3))
    await d.guard.seal({ ...at(3), jobId: 'sealed' })
    const refusals: [codes: string[], () => Promise<unknown>][] = [
      [['stale'], () => d.guard.write(intent(2), d.appends('late'))],
      [['conflict'], () => d.guard.write(intent(3, 'y', { leaseId: 'b' }), d.appends('late'))],
      [['mismatch'], () => d.guard.write(intent(3, 'done'), d.appends('late'))],
      [['outcome_unknown'], () => d.guard.effect(intent(3, 'lost'), never)],
      [['in_flight', 'outcome_unknown'], () => d.guard.effect(intent(3, 'running'), never)],
      [['in_flight', 'outcome_unknown'], () => d.guard.write(intent(3), d.appends('late'))],
      [['sealed'], () => d.guard.write(intent(3, 'y', { jobId: 'sealed' }), d.appends('late'))],
    ]
    for (const ms of [0, 1, 989, 10_000, -20_000, 1e12, -2e12]) {
      d.advanceClock(ms)
      for (const [codes, call] of refusals) {
        const error = await failure(call())
        assert.ok(error instanceof WriteRefusedError, String(error))
        assert.ok(codes.includes(error.code), error.code)
      }
    }
    assert.deepEqual(await d.log(), ['before'])
  }),

  law('R01: a clock that is wrong at the destination decides nothing', async (d) => {
    const now = Date.now
    const guard = await d.openOnEngineTime()
    try {
      for (const shift of [HOUR_MS, -HOUR_MS]) {
        const of = { jobId: `shifted ${shift}` }
        Date.now = () => now() + shift
        await d.applies(intent(1, 'done', of), 'once', guard)
        await d.begin(intent(1, 'running', of), { deadlineMs: HOUR_MS / 2 }, guard)
        Date.now = () => now() - shift
        await refused(guard.effect(intent(2, 'running', of), never), 'in_flight')
        await refused(guard.write(intent(2, 'next', of), d.appends('late')), 'in_flight')
        const [listed] = await guard.unsettled(of)
        assert.equal(listed?.status, 'in_flight')
        assert.deepEqual(await guard.prune({ olderThanMs: HOUR_MS / 2 }), { pruned: 0 })
      }
    } finally {
      Date.now = now
    }
  }),

  law('R56: pruning forgets operations, never fences', async (d) => {
    await d.applies(intent(5, 'x'), 'once')
    d.advanceClock(1000)
    assert.deepEqual(await d.guard.prune({ olderThanMs: 1000 }), { pruned: 1 })
    await refused(d.guard.write(intent(4, 'y'), d.appends('late')), 'stale')
    await d.applies(intent(6, 'x'), 'the promise ended with its record')
  }),

  law('R127: pruning takes old records, oldest first, and so many in one call', async (d) => {
    for (const operationId of ['c', 'a', 'b']) {
      await d.applies(intent(1, operationId))
      d.advanceClock(100)
    }
    assert.deepEqual(await d.guard.prune({ olderThanMs: 301 }), { pruned: 0 })
    assert.deepEqual(await d.guard.prune({ olderThanMs: 200, limit: 1 }), { pruned: 1 })
    const said = async (id: string) => (await d.guard.judge(intent(1, id))).status
    assert.deepEqual([await said('c'), await said('a')], ['apply', 'replay'])
    assert.deepEqual(await d.guard.prune({ olderThanMs: 200 }), { pruned: 1 })
    assert.deepEqual([await said('a'), await said('b')], ['apply', 'replay'])
  }),

  law('pruning leaves what is in flight, overdue or unknown', async (d) => {
    await leaveUnsettled(d)
    d.advanceClock(1e9)
    assert.deepEqual(await d.guard.prune({ olderThanMs: 0 }), { pruned: 0 })
    assert.equal((await d.guard.unsettled()).length, 3)
  }),

  law('records of sealed jobs can go by themselves', async (d) => {
    const sealed = { jobId: 'sealed' }
    await d.applies(intent(1, 'x'))
    await d.applies(intent(1, 'x', { ...sealed, scope: 'other' }))
    await d.applies(intent(1, 'x', sealed))
    await d.guard.seal(intent(1, 'x', sealed).token)
    assert.deepEqual(await d.guard.prune({ olderThanMs: 0, sealedOnly: true }), { pruned: 1 })
    assert.deepEqual(await d.guard.prune({ olderThanMs: 0 }), { pruned: 2 })
  }),

  law('operations that are not settled are listed, lowest generation first', async (d) => {
    await d.applies(intent(1, 'done'))
    await leaveUnsettled(d, 2)
    await d.begin(intent(1, 'x', { jobId: 'other', scope: 's' }))
    const all = await d.guard.unsettled()
    const row = (operationId: string, status: string) => ({
      scope: '',
      jobId: 'job',
      operationId,
      generation: 2,
      status,
    })
    const other = { scope: 's', jobId: 'other', operationId: 'x', generation: 1 }
    const byId = (a: { operationId: string }, b: { operationId: string }) =>
      a.operationId < b.operationId ? -1 : 1
    assert.deepEqual(all[0], { ...other, status: 'in_flight' })
    const mine = [row('lost', 'unknown'), row('overdue', 'overdue'), row('running', 'in_flight')]
    assert.deepEqual(all.slice(1).toSorted(byId), mine)
    assert.deepEqual(await d.guard.unsettled({ limit: 1 }), all.slice(0, 1))
    assert.deepEqual(await d.guard.unsettled({ scope: 's' }), all.slice(0, 1))
    assert.equal((await d.guard.unsettled({ jobId: 'job' })).length, 3)
    assert.deepEqual(await d.guard.unsettled({ jobId: 'job', scope: 's' }), [])
  }),

  law('a closed store answers every verb with store_unavailable', async (d) => {
    await d.applies(intent(1, 'x'))
    const { guard } = d
    await guard.close()
    const calls: [() => Promise<unknown>, retryable: boolean][] = [
      [() => guard.write(intent(1, 'y'), d.appends('late')), true],
      [() => guard.write(intent(1), d.appends('late')), false],
      [() => guard.effect(intent(1, 'y'), never), true],
      [() => guard.effect(intent(1), never), false],
      [() => d.transaction((tx) => guard.within(tx, intent(1, 'y'), d.appends('late'))), true],
      [() => guard.judge(intent(1)), true],
      [() => guard.advance(token), true],
      [() => guard.seal(token), true],
      [() => guard.reopen('job'), true],
      [() => guard.inspect('job'), true],
      [() => guard.unsettled(), true],
      [() => guard.resolve({ jobId: 'job', operationId: 'x' }, { status: 'not_applied' }), true],
      [() => guard.prune({ olderThanMs: 0 }), true],
    ]
    for (const [call, retryable] of calls) {
      const error = await failure(call())
      assert.ok(error instanceof StoreUnavailableError, String(error))
      assert.equal(error.retryable, retryable)
    }
    assert.deepEqual(await d.log(), ['effect'])
  }),
]

export const fenceEndingLaws: readonly FenceStoreLaw[] = [...sealing, ...reopening, ...lasting]
