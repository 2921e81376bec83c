/**
 * After all the harm: a fresh holder of each job can write, since refusing everything is no way
 * out; what was applied is answered again, and not done again; and after one more restart an older
 * holder is refused.
 */

import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import type { HeldLease } from '../../src/lease/held-lease.ts'
import { runWithLease } from '../../src/lease/run-with-lease.ts'
import { HttpLeaseStore, httpDestination } from '../../src/storage/http/index.ts'
import { formatFencingToken } from '../../src/wire/headers.ts'
import type { Violation } from './judge.ts'
import { recorder, recordingFetch } from './recorder.ts'

export interface Aftermath {
  readonly leases: string
  readonly bank: string
  readonly history: string
  readonly jobs: number
  /** Routes and operation ids that are known to be applied, of each job. */
  readonly applied: ReadonlyMap<string, readonly string[]>
  readonly patienceMs: number
}

// Enough of each job that whatever was lost is among them, few enough to take seconds.
const REPLAYS = 30
const AT_ONCE = 8

/** What is stuck, if anything, and the last generation of each job that is not. */
export async function livesOn(
  after: Aftermath,
): Promise<{ readonly stuck: Violation[]; readonly last: ReadonlyMap<string, number> }> {
  const writer = recorder(after.history, 'last')
  const fetch = recordingFetch(writer)
  const store = new HttpLeaseStore(after.leases, { fetch })
  const destinations = [httpDestination(after.bank, { fetch })]
  const giveUpAt = performance.now() + after.patienceMs
  const stuck: Violation[] = []
  const generations = new Map<string, number>()
  const jobs = Array.from({ length: after.jobs }, (_, i) => `job-${i}`)
  const tryJobs = async () => {
    for (let jobId = jobs.pop(); jobId !== undefined; jobId = jobs.pop()) {
      const options = { jobId, owner: 'last', ttlMs: 20_000, destinations, fetch } as const
      for (let last: unknown = 'never held'; ; await sleep(100)) {
        try {
          const outcome = await runWithLease(store, { ...options, settle: 'release' }, (lease) =>
            useAgain(lease, after),
          )
          if (outcome.status === 'released') {
            generations.set(jobId, outcome.generation)
            break
          }
          last = outcome
        } catch (error) {
          last = error
        }
        if (performance.now() < giveUpAt) continue
        stuck.push({ rule: 'stuck', message: `${jobId}: ${inspect(last)}` })
        break
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, tryJobs))
  return { stuck, last: generations }
}

async function useAgain(lease: HeldLease, { bank, applied }: Aftermath): Promise<void> {
  const { jobId } = lease
  const known = (applied.get(jobId) ?? []).slice(-REPLAYS)
  for (const operationId of [...known, 'write-last']) {
    const [kind = ''] = operationId.split('-')
    const init = { method: 'POST', operationId, retryForMs: 10_000 }
    const answer = await lease.fetch(`${bank}/jobs/${jobId}/${kind}`, init)
    if (!answer.ok) throw new Error(`${operationId} was answered ${answer.status}`)
  }
}

/** Whoever held a job before its last holder comes back. What the fence is now is recorded, too. */
export async function olderHolders(
  { bank, history }: Aftermath,
  last: ReadonlyMap<string, number>,
): Promise<Violation[]> {
  const { record, call } = recorder(history, 'older')
  const fetch = recordingFetch({ record, call })
  const wrong: Violation[] = []
  for (const [jobId, generation] of last) {
    const seen = await answered(() => globalThis.fetch(`${bank}/fences/${jobId}`))
    if (seen.status !== 200) {
      const message = `${jobId}: the answer for its fence was ${seen.status}`
      wrong.push({ rule: 'fence_unknown', message })
      continue
    }
    const { highestGeneration: fence } = (await seen.json()) as { highestGeneration: number }
    record({ event: 'fence', destination: 'bank', jobId, generation: fence })
    // The very first holder has nobody before him.
    if (generation < 2) continue
    const older = { jobId, generation: generation - 1, leaseId: randomUUID() }
    const headers = {
      'Fencing-Token': formatFencingToken(older),
      'Idempotency-Key': `"write-older-${older.leaseId}"`,
    }
    const write = () => fetch(`${bank}/jobs/${jobId}/write`, { method: 'POST', headers })
    const { status } = await answered(write)
    if (status === 412) continue
    wrong.push({ rule: 'older_holder', message: `${jobId}: an older holder got ${status}` })
  }
  return wrong
}

/** Asks again where the store was not available: that is no answer to what is asked here. */
async function answered(ask: () => Promise<Response>): Promise<Response> {
  for (let tries = 20; ; tries -= 1) {
    const answer = await ask()
    if (answer.status !== 503 || tries === 0) return answer
    await sleep(200)
  }
}
