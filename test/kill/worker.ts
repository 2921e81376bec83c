/**
 * A process of several workers, which is killed. Each takes one job after the other, and goes on
 * where others have ended: what they did last is sent again, since nobody knows what became of it.
 */

import { runWithLease } from '../../src/lease/run-with-lease.ts'
import { HttpLeaseStore, httpDestination } from '../../src/storage/http/index.ts'
import { endWithParent, isUp, taskOf } from './child.ts'
import { recorder, recordingFetch } from './recorder.ts'
import type { WorkerTask } from './tasks.ts'

const { history, slowness, name, slot, leases, bank, jobs, workers, kinds } = taskOf<WorkerTask>()
const fetch = recordingFetch(recorder(history, name), slot)
const times = (ms: number) => Math.round(ms * slowness)
const store = new HttpLeaseStore(leases, { fetch, timeoutMs: times(500) })
const destinations = [httpDestination(bank, { fetch, timeoutMs: times(500) })]
const LIMITS = {
  ttlMs: times(1_500),
  retryForMs: times(2_000),
  takeoverTimeoutMs: times(4_000),
}

async function work(owner: string): Promise<void> {
  const jobId = `job-${Math.floor(Math.random() * jobs)}`
  const options = { jobId, owner, destinations, fetch, settle: 'release', ...LIMITS } as const
  await runWithLease(store, options, async (lease) => {
    const read = await lease.fetch(`${bank}/jobs/${jobId}/done`)
    const { done } = (await read.json()) as { done: number }
    const first = Math.max(0, done - 1)
    for (let step = first; step < first + 5; step += 1) {
      const sent = kinds.map((kind) => {
        const init = { method: 'POST', operationId: `${kind}-${step}`, timeoutMs: times(1_000) }
        return lease.fetch(`${bank}/jobs/${jobId}/${kind}`, init)
      })
      for (const answer of await Promise.allSettled(sent)) {
        if (answer.status === 'rejected') throw answer.reason
      }
    }
  })
}

async function workOnAndOn(owner: string): Promise<never> {
  for (;;) {
    // Refused, lost or cut off: what it means is for the history to say.
    await work(owner).catch(() => {})
    await new Promise((resolve) => setTimeout(resolve, 30 * Math.random()))
  }
}

endWithParent()
isUp(0)
for (let i = 0; i < workers; i += 1) void workOnAndOn(`${name}-${i}`)
