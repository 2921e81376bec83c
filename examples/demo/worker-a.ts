/** Worker A of the demo: it is stopped at the worst moment, and does not know. */

import { type Fetch, type HeldLease, runWithLease } from 'writefence'
import { TTL_MS } from './job.ts'
import { credit, job, leases, send, tell, tellStep } from './worker.ts'

/**
 * The gap that no check of a lease can close: the lease was held when `lease.fetch` looked, the
 * request is not out yet, and between the two the process stands still. Here it stops itself, so
 * that it is exactly here; a long garbage collection or a suspended machine does the same.
 */
const stopOnTheWay: Fetch = async (url, init) => {
  if (new Headers(init.headers).get('Idempotency-Key') === '"credit-20"') {
    await tell('SIGSTOP: stands still')
    process.kill(process.pid, 'SIGSTOP')
  }
  // What is on its way is not called back by a signal.
  return send(url, { ...init, signal: null })
}

let held: HeldLease | undefined
const options = { ...job, owner: 'A', ttlMs: TTL_MS, onEvent: tellStep, fetch: stopOnTheWay }
const outcome = await runWithLease(leases, options, async (lease) => {
  held = lease
  await credit(lease, 100)
  await credit(lease, 20)
  await credit(lease, 3)
})

// The run ended as lost, and completed nothing. Should a worker insist, the lease store refuses: it
// knows whose job it is. What it never sees are the writes, which go elsewhere.
if (outcome.status !== 'lost' || held === undefined) throw new Error(`A ended ${outcome.status}`)
const answer = await leases.complete(held)
await tell(answer.status === 'lost' ? `lost, ${answer.reason}` : answer.status)
process.disconnect()
