/** What requests that overlap, and a restart, show of a destination. */

import type { ProbeCheck } from './probe.ts'
import { type ProbeJob, type Seen, Violation } from './probe-session.ts'

const DUPLICATES = 6
const MOST_DUPLICATES = 60
const ROUNDS = 10
const SHORT_ROUNDS = 4

export const raceChecks: readonly ProbeCheck[] = [
  {
    property: 'applies_concurrent_duplicates_once',
    async run(session) {
      for (let round = 0; round < SHORT_ROUNDS; round += 1) {
        const job = await session.job()
        await duplicates(job)
        await job.judgeEffects()
      }
      return { holds: true, detail: 'of many requests with one id one is applied' }
    },
  },
  {
    property: 'checks_when_it_writes',
    async run(session) {
      const { write } = session.options
      const { body = '' } = await write({ jobId: 'job', operationId: 'a', variant: 1 })
      if (body === '') return { holds: undefined, detail: 'needs a request that has a body' }
      for (let round = 0; round < SHORT_ROUNDS; round += 1) {
        const job = await session.job()
        await slowBody(job)
        await job.judgeEffects()
      }
      return { holds: true, detail: 'a body that ends after a takeover writes nothing' }
    },
  },
  {
    property: 'orders_concurrent_generations',
    async run(session) {
      for (let round = 0; round < ROUNDS; round += 1) {
        const job = await session.job()
        await takeoverRace(job, await session.job())
        await job.judgeEffects()
      }
      return session.options.effects === undefined
        ? { holds: undefined, detail: 'answers alone do not tell the order: give it `effects`' }
        : { holds: true, detail: `generations did not fall in ${ROUNDS} races` }
    },
  },
  {
    property: 'remembers_after_restart',
    async run(session) {
      const { restart } = session.options
      if (restart === undefined) return { holds: undefined, detail: 'needs `restart`' }
      const job = await session.job()
      const first = await job.accepted(8, 'a')
      session.baseUrl = (await restart()) ?? session.baseUrl
      await job.refused('stale', 7, 'b')
      await job.replays(first, 8)
      await job.accepted(8, 'c')
      await job.judgeEffects()
      return { holds: true, detail: 'fence and records are there after a restart' }
    },
  },
]

/**
 * The same request many times over, all of which end at once. Who is told to wait asks again at
 * once: whoever lets a refused duplicate end the operation of another runs it again now.
 */
async function duplicates(job: ProbeJob): Promise<void> {
  const calls = await Promise.all(Array.from({ length: DUPLICATES }, () => job.begin(7, 'a')))
  // A whole write on a later connection: by its answer the others have been accepted.
  await job.accepted(7, 'before')
  for (const call of calls) call.finish()
  const seen: Seen[] = []
  const asked = async (answer: Promise<Seen>): Promise<void> => {
    const each = await answer
    seen.push(each)
    if (each.word === 'in_flight' && seen.length < MOST_DUPLICATES) {
      await asked(job.send(7, 'a'))
    }
  }
  await Promise.all(calls.map(({ answer }) => asked(answer)))
  const applied = seen.filter(({ success, replayed }) => success && !replayed)
  if (applied.length !== 1) throw new Violation(`${applied.length} of ${seen.length} were applied`)
  const odd = seen.find(({ success, word }) => !success && word !== 'in_flight')
  if (odd !== undefined) throw new Violation(`${odd.what}: a duplicate is a replay or waits`)
  for (const first of applied) await job.replays(first, 7)
}

/** Generation 7 is half sent when 8 takes over: if 8 was acknowledged, 7 comes too late. */
async function slowBody(job: ProbeJob): Promise<void> {
  await job.accepted(7, 'before')
  const slow = await job.begin(7, 'slow')
  const newer = await job.send(8, 'newer')
  slow.finish()
  const late = await slow.answer
  if (newer.success) {
    job.expectRefusal('stale', late)
  } else if (newer.word === 'in_flight') {
    // 7 is known to have begun, and 8 waits for it: in order as well.
    await job.accepted(8, 'newer')
  } else {
    throw new Violation(`${newer.what}: it must be applied`)
  }
  await job.refused('stale', 7, 'later')
}

async function takeoverRace(job: ProbeJob, other: ProbeJob): Promise<void> {
  const calls = await Promise.all([job.begin(8, 'c'), job.begin(7, 'a'), job.begin(7, 'b')])
  await other.accepted(7, 'before')
  for (const call of calls.toReversed()) call.finish()
  const [newer, ...rest] = await Promise.all(calls.map(({ answer }) => answer))
  if (!newer?.success) await job.accepted(8, 'c')
  for (const { success, highestGeneration = 0, what } of rest) {
    if (success && highestGeneration > 7) throw new Violation(`${what} under ${highestGeneration}`)
  }
  await job.refused('stale', 7, 'd')
}
