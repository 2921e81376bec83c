/** Who is refused, with which code, and what a refusal leaves behind (rules 11 and 12). */

import assert from 'node:assert/strict'
import { WriteRefusedError } from '../errors.ts'
import type { WriteIntent } from '../guard/intent.ts'
import type { Destination } from './fence-destination.ts'
import { intent, law, refused } from './fence-destination.ts'
import type { FenceStoreLaw } from './fence-store-context.ts'

/** Everything that can be said against a write, each with or without the others. */
interface Situation {
  readonly token: 'stale' | 'conflict' | 'held' | 'newer'
  readonly own: 'absent' | 'applied' | 'in_flight' | 'overdue' | 'unknown'
  readonly otherRequest: boolean
  readonly sealed: boolean
  readonly older: 'none' | 'in_flight' | 'overdue'
}

const situations: readonly Situation[] = (['stale', 'conflict', 'held', 'newer'] as const).flatMap(
  (token) =>
    (['absent', 'applied', 'in_flight', 'overdue', 'unknown'] as const).flatMap((own) =>
      [false, true].flatMap((otherRequest) =>
        [false, true].flatMap((sealed) =>
          (['none', 'in_flight', 'overdue'] as const)
            .map((older) => ({ token, own, otherRequest, sealed, older }))
            .filter((one) => !(one.own === 'absent' && one.otherRequest)),
        ),
      ),
    ),
)

type Said = { readonly said: string; readonly because: keyof Situation | 'nothing' }

/** Rule 11, line by line: what is said, and for which reason. */
function rule11({ token, own, otherRequest, sealed, older }: Situation): Said {
  if (token === 'stale') return { said: 'stale', because: 'token' }
  if (token === 'conflict') return { said: 'conflict', because: 'token' }
  if (otherRequest) return { said: 'mismatch', because: 'otherRequest' }
  if (own === 'applied') return { said: 'replayed', because: 'own' }
  if (own === 'in_flight') return { said: 'in_flight', because: 'own' }
  if (own !== 'absent') return { said: 'outcome_unknown', because: 'own' }
  if (sealed) return { said: 'sealed', because: 'sealed' }
  if (older === 'overdue') return { said: 'outcome_unknown', because: 'older' }
  if (older === 'in_flight') return { said: 'in_flight', because: 'older' }
  return { said: 'applied', because: 'nothing' }
}

const FENCE = 5
const GENERATIONS = { stale: 4, conflict: FENCE, held: FENCE, newer: 6 }

/** Brings one job into the situation, and returns the write that meets it. */
async function arrange(d: Destination, jobId: string, one: Situation): Promise<WriteIntent> {
  const early = { jobId, fingerprint: 'f1' }
  const begin = (operationId: string, overdue: boolean) =>
    d.begin(intent(3, operationId, early), { deadlineMs: overdue ? 10 : 1000 })
  if (one.own === 'applied') await d.applies(intent(3, 'own', early), jobId)
  if (one.own === 'in_flight' || one.own === 'overdue') await begin('own', one.own === 'overdue')
  if (one.own === 'unknown') {
    const running = await begin('own', false)
    running.fail(new Error('lost the connection'))
    await running.outcome.catch(() => {})
  }
  if (one.older !== 'none') await begin('older', one.older === 'overdue')
  const { token } = intent(FENCE, undefined, { jobId })
  await (one.sealed ? d.guard.seal(token) : d.guard.advance(token))
  return intent(GENERATIONS[one.token], 'own', {
    jobId,
    leaseId: one.token === 'conflict' ? 'b' : 'a',
    fingerprint: one.otherRequest ? 'f2' : 'f1',
  })
}

/** What the guard says to a write: the status of the outcome, or the code of the refusal. */
async function saidTo(d: Destination, write: WriteIntent, text: string): Promise<string> {
  try {
    return (await d.guard.write(write, d.appends(text, text))).status
  } catch (error) {
    if (error instanceof WriteRefusedError) return error.code
    throw error
  }
}

async function assertSituation(d: Destination, jobId: string, one: Situation): Promise<void> {
  const write = await arrange(d, jobId, one)
  d.advanceClock(10)
  const { said } = rule11(one)
  const judged = await d.guard.judge(write)
  const verdict = judged.status === 'refuse' ? judged.code : judged.status
  const label = JSON.stringify(one)
  assert.equal(verdict, { applied: 'apply', replayed: 'replay' }[said] ?? said, label)
  assert.equal(await saidTo(d, write, `${jobId} again`), said, label)
  if (said !== 'applied') {
    // A refusal has left the record as it was: the same is said once more.
    assert.equal(await saidTo(d, write, `${jobId} again`), said, label)
  }
  const state = await d.guard.inspect(jobId)
  const admitted = one.token === 'held' || one.token === 'newer'
  const expected = { highestGeneration: FENCE, holder: 'lease', sealed: one.sealed }
  if (admitted) expected.highestGeneration = GENERATIONS[one.token]
  const { highestGeneration, holder, sealed } = state ?? {}
  assert.deepEqual({ highestGeneration, holder, sealed }, expected, label)
}

/** One law for each line of rule 11: all situations in which that line is the first to hold. */
function orderLaw(name: string, said: string, because: Said['because']): FenceStoreLaw {
  return law(name, async (d) => {
    const chosen = situations.filter((one) => {
      const expected = rule11(one)
      return expected.said === said && expected.because === because
    })
    assert.ok(chosen.length > 0)
    // One after another: the clock is shared, and moves once everything is arranged.
    for (const [index, one] of chosen.entries()) await assertSituation(d, `job ${index}`, one)
    const applied = (await d.log()).filter((text) => text.endsWith('again'))
    assert.equal(applied.length, said === 'applied' ? chosen.length : 0)
  })
}

export const fenceVerdictLaws: readonly FenceStoreLaw[] = [
  orderLaw('stale is said before everything else, and moves nothing', 'stale', 'token'),
  orderLaw('R119: conflict is said right after stale, and moves nothing', 'conflict', 'token'),
  orderLaw('mismatch is said before how the operation ended', 'mismatch', 'otherRequest'),
  orderLaw('an applied operation is replayed, whatever holds new ones back', 'replayed', 'own'),
  orderLaw("an operation in flight is said before the job's seal", 'in_flight', 'own'),
  orderLaw('an outcome that is not known is said before the seal', 'outcome_unknown', 'own'),
  orderLaw('a seal is said before older operations', 'sealed', 'sealed'),
  orderLaw('an overdue older operation holds a write back', 'outcome_unknown', 'older'),
  orderLaw('an older operation in flight holds a write back', 'in_flight', 'older'),
  orderLaw('with nothing against it a write is applied', 'applied', 'nothing'),

  law('a refused caller is told whether his operation was applied', async (d) => {
    await d.applies(intent(3, 'done', { fingerprint: 'f' }))
    await d.begin(intent(3, 'running'))
    await d.guard.advance(intent(5).token)
    const stale = (operationId?: string, fingerprint?: string) =>
      d.guard.write(intent(4, operationId, { fingerprint }), d.appends('late'))
    await refused(stale('done', 'f'), 'stale', { operationApplied: true, highestGeneration: 5 })
    await refused(stale('done', 'g'), 'stale', { operationApplied: false })
    await refused(stale('fresh'), 'stale', { operationApplied: false })
    await refused(stale('running'), 'stale', { operationApplied: undefined })
    await refused(stale(), 'stale', { operationApplied: undefined })
  }),

  law('a token without a leaseId equals only another one without', async (d) => {
    const bare = { leaseId: undefined }
    await d.applies(intent(1, 'a', { ...bare, jobId: 'bare' }))
    await d.applies(intent(1, 'b', { ...bare, jobId: 'bare' }))
    const claimed = d.guard.write(intent(1, 'c', { jobId: 'bare' }), d.appends('c'))
    await refused(claimed, 'conflict', { highestGeneration: 1 })
    await d.applies(intent(1, 'a', { jobId: 'held' }))
    const stripped = d.guard.write(intent(1, 'b', { ...bare, jobId: 'held' }), d.appends('b'))
    await refused(stripped, 'conflict', { highestGeneration: 1 })
  }),

  law('R119: a second holder of one generation is refused, the first goes on', async (d) => {
    await d.applies(intent(5, 'one'), 'first')
    const second = intent(5, 'two', { leaseId: 'b' })
    await refused(d.guard.write(second, d.appends('second')), 'conflict')
    await refused(d.guard.advance(second.token), 'conflict', { highestGeneration: 5 })
    await refused(d.guard.seal(second.token), 'conflict', { highestGeneration: 5 })
    const elsewhere = d.guard.effect(second, async () => assert.fail('it ran'))
    await refused(elsewhere, 'conflict')
    await d.applies(intent(5, 'three'), 'third')
    assert.deepEqual(await d.log(), ['first', 'third'])
  }),

  law('judge records nothing and moves nothing', async (d) => {
    assert.deepEqual(await d.guard.judge(intent(7, 'x')), {
      status: 'apply',
      highestGeneration: 7,
    })
    assert.equal(await d.guard.inspect('job'), undefined)
    await d.applies(intent(1, 'x'))
    assert.deepEqual(await d.guard.judge(intent(2, 'x')), {
      status: 'replay',
      highestGeneration: 2,
      appliedGeneration: 1,
    })
    assert.equal((await d.guard.inspect('job'))?.highestGeneration, 1)
  }),
]
