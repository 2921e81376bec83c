/** After all the harm, a fresh holder of each job can write: refusing everything is no way out. */

import { runWithLease } from '../../src/lease/run-with-lease.ts'
import { HttpLeaseStore, httpDestination } from '../../src/storage/http/index.ts'
import { recorder, recordingFetch } from './recorder.ts'

const PATIENCE_MS = 30_000

/** What is stuck; empty where every job goes on. */
export async function livesOn(leases: string, bank: string, history: string, jobs: number) {
  const fetch = recordingFetch(recorder(history, 'last'))
  const store = new HttpLeaseStore(leases, { fetch })
  const destinations = [httpDestination(bank, { fetch })]
  const stuck: { rule: string; message: string }[] = []
  for (let job = 0; job < jobs; job += 1) {
    const jobId = `job-${job}`
    const options = { jobId, owner: 'last', ttlMs: 10_000, destinations, fetch } as const
    const giveUpAt = performance.now() + PATIENCE_MS
    for (let last: unknown = 'never held'; ; ) {
      try {
        const outcome = await runWithLease(
          store,
          { ...options, settle: 'release' },
          async (lease) => {
            const init = { method: 'POST', operationId: 'write-last' }
            return (await lease.fetch(`${bank}/jobs/${jobId}/write`, init)).status
          },
        )
        if (outcome.status === 'released') break
        last = outcome
      } catch (error) {
        last = error
      }
      if (performance.now() > giveUpAt) {
        stuck.push({ rule: 'stuck', message: `${jobId}: ${JSON.stringify(last)} ${last}` })
        break
      }
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
  return stuck
}
