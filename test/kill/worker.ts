/** A worker that is killed: takes one job after the other, and goes on where others have ended. */

import { runWithLease } from '../../src/lease/run-with-lease.ts'
import { HttpLeaseStore, httpDestination } from '../../src/storage/http/index.ts'
import { recorder, recordingFetch } from './recorder.ts'

const [history = '', name = '', leases = '', bank = '', jobCount = '1'] = process.argv.slice(2)
const fetch = recordingFetch(recorder(history, name))
const store = new HttpLeaseStore(leases, { fetch, timeoutMs: 500 })
const destinations = [httpDestination(bank, { fetch, timeoutMs: 500 })]
const KINDS = ['write', 'handle', 'elsewhere'] as const

process.send?.({ port: 0 })
for (;;) {
  const jobId = `job-${Math.floor(Math.random() * Number(jobCount))}`
  const options = { jobId, owner: name, ttlMs: 900, destinations, fetch, retryForMs: 2_000 }
  try {
    const limits = { takeoverTimeoutMs: 3_000, settle: 'release' } as const
    await runWithLease(store, { ...options, ...limits }, async (lease) => {
      const read = await lease.fetch(`${bank}/jobs/${jobId}/done`)
      const { done } = (await read.json()) as { done: number }
      for (let step = done; step < done + 4; step += 1) {
        for (const kind of KINDS) {
          const init = { method: 'POST', operationId: `${kind}-${step}` }
          await lease.fetch(`${bank}/jobs/${jobId}/${kind}`, init)
        }
      }
    })
  } catch {
    // Refused, lost or cut off: what it means is for the history to say.
  }
  await new Promise((resolve) => setTimeout(resolve, 20 * Math.random()))
}
