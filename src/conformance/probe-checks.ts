/** What one request after the other shows of a destination. */

import { FENCING_TOKEN, formatFencingToken, IDEMPOTENCY_KEY } from '../wire/headers.ts'
import type { ProbeCheck } from './probe.ts'
import type { ProbeJob } from './probe-session.ts'

export const sequentialChecks: readonly ProbeCheck[] = [
  onOneJob('accepts_first', async (job) => {
    await job.accepted(7, 'a')
    return 'the first write of a job is applied'
  }),
  onOneJob('accepts_same_generation', async (job) => {
    await job.accepted(7, 'a')
    await job.accepted(7, 'b')
    return 'another write under the same token is applied'
  }),
  onOneJob('accepts_newer_generation', async (job) => {
    await job.accepted(7, 'a')
    await job.accepted(8, 'b')
    await job.accepted(4711, 'c')
    return 'a newer generation is applied, gaps included'
  }),
  onOneJob('compares_as_numbers', async (job) => {
    await job.accepted(9, 'a')
    await job.accepted(10, 'b')
    await job.refused('stale', 9, 'c')
    return '10 is newer than 9'
  }),
  onOneJob('refuses_stale', async (job) => {
    await job.accepted(8, 'a')
    await job.refused('stale', 7, 'b')
    await job.refused('stale', 1, 'c')
    await job.accepted(8, 'd')
    return 'what is older than the newest generation seen is refused'
  }),
  onOneJob('refuses_stale_after_takeover', async (job) => {
    const first = await job.accepted(7, 'a')
    await job.replays(first, 8)
    await job.refused('stale', 7, 'a')
    await job.refused('stale', 7, 'b')
    await job.accepted(8, 'c')
    return 'a replay advances the fence too, and an old holder is refused even his own operation'
  }),
  onOneJob('advances_when_refusing', async (job) => {
    await job.accepted(7, 'a')
    await job.refused('mismatch', 8, 'a', { variant: 2 })
    await job.refused('stale', 7, 'b')
    return 'a newer token advances the fence though its write is refused'
  }),
  onOneJob('refuses_second_holder', async (job) => {
    await job.accepted(7, 'a')
    await job.refused('conflict', 7, 'b', { leaseId: job.leaseOf(8) })
    await job.accepted(7, 'c')
    return 'a second lease with the same generation is refused'
  }),
  onOneJob('replays_duplicates', async (job) => {
    const first = await job.accepted(7, 'a')
    await job.repeats(first, 7)
    await job.repeats(first, 8)
    return 'an operation that is applied is answered again, to its sender and to the next holder'
  }),
  onOneJob('refuses_mismatch', async (job) => {
    const first = await job.accepted(7, 'a')
    await job.refused('mismatch', 7, 'a', { variant: 2 })
    await job.replays(first, 7)
    return 'one operation id for two requests is refused'
  }),
  {
    property: 'keeps_jobs_apart',
    async run(session) {
      const shared = `${session.id}-shared`
      const [one, other] = [await session.job(shared), await session.job(shared)]
      await one.accepted(8, 'a')
      await other.accepted(7, 'a')
      for (const job of [one, other]) await job.judgeEffects()
      return { holds: true, detail: 'fence and operation ids of one job say nothing of another' }
    },
  },
  onOneJob('refuses_malformed', async (job) => {
    for (const lines of malformedTokens(job)) {
      await job.refused('token_malformed', 5, 'a', { headers: { [FENCING_TOKEN]: lines } })
    }
    await job.refused('token_required', 5, 'a', { headers: { [FENCING_TOKEN]: [] } })
    for (const key of ['"a', '', ['a', 'b']]) {
      await job.refused('operation_id_malformed', 5, 'a', { headers: { [IDEMPOTENCY_KEY]: key } })
    }
    await job.accepted(1, 'b')
    return 'tokens and keys that are malformed, repeated or absent are refused and change nothing'
  }),
]

/** A check whose effects are all of one job. */
function onOneJob(
  property: ProbeCheck['property'],
  body: (job: ProbeJob) => Promise<string>,
): ProbeCheck {
  return {
    property,
    async run(session) {
      const job = await session.job()
      const detail = await body(job)
      await job.judgeEffects()
      return { holds: true, detail }
    },
  }
}

function malformedTokens(job: ProbeJob): (string | string[])[] {
  const of = (generation: number) =>
    formatFencingToken({ jobId: job.jobId, generation, leaseId: job.leaseOf(5) })
  const parameters = of(5).slice(1)
  const spellings = ['05', '5.0', '+5', '"5"', '5abc', '1e3', '0x10', '0', '-1', '?1', 'NaN', '']
  return [
    ...spellings.map((spelling) => `${spelling}${parameters}`),
    `1000000000000000${parameters}`,
    `9007199254740993${parameters}`,
    `${of(5)};lease="x"`,
    `${of(3)}, ${of(5)}`,
    [of(3), of(5)],
  ]
}
