/** Worker B of the demo: it takes the job over, and finishes it. */

import { setTimeout as sleep } from 'node:timers/promises'
import { type Fetch, runWithLease } from 'writefence'
import { credit, job, leases, readBalance, send, tell, tellStep, verdictOf } from './worker.ts'

let lost = false

/** Loses one answer on its way back: the write took place, and B does not know. */
const loseOneAnswer: Fetch = async (url, init) => {
  const response = await send(url, init)
  if (lost || new Headers(init.headers).get('Idempotency-Key') !== '"credit-3"') return response
  lost = true
  await tell(`${verdictOf(response)}, answer lost`)
  throw new TypeError('the connection was cut before the answer came')
}

const options = { ...job, owner: 'B', ttlMs: 10_000, onEvent: tellStep, fetch: loseOneAnswer }

function work() {
  return runWithLease(leases, options, async (lease) => {
    // A careful worker: it looks at what is there, and does only what is missing.
    await readBalance(lease)
    await credit(lease, 20)
    await credit(lease, 3)
  })
}

let outcome = await work()
if (outcome.status === 'held') await tell('held')
while (outcome.status === 'held') {
  await sleep(outcome.retryAfterMs)
  outcome = await work()
}
process.disconnect()
