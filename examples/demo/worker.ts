/**
 * What the two workers of the demo share. The argument is `guarded` or `unguarded`. All that is
 * special about them is that they tell each step to the main process.
 */

import { once } from 'node:events'
import { type Fetch, type HeldLease, type LeaseEvent, WriteRefusedError } from 'writefence'
import { HttpLeaseStore, httpDestination } from 'writefence/http'
import { JOB_ID, type Report } from './job.ts'

const guarded = process.argv[2] === 'guarded'
let generation: number | undefined
let status = 0

/** Tells the main process what was answered; resolves once the message is on its way. */
export async function tell(answer: string): Promise<void> {
  const report: Report = { answer, generation }
  await new Promise((resolve) => process.send?.(report, undefined, undefined, resolve))
}

/** For `onEvent`. Renewals are left out: they come when they come. */
export function tellStep({ event, generation: claimed }: LeaseEvent): void {
  if (event === 'claimed') generation = claimed
  if (event === 'fenced') void tell(`fence at ${generation}`)
  if (event === 'claimed' || event === 'completed') void tell(event)
}

// The demo is over, or was killed: nothing of it stays behind.
process.on('disconnect', () => process.exit())

// It is this worker's turn once it is told where the destination is.
const word = once(process, 'message')
await tell('ready')
const [url] = (await word) as [string]

export const leases = new HttpLeaseStore(url)
// Without the guard there is no fence service to advance, and nothing that gives a verdict.
export const job = { jobId: JOB_ID, destinations: guarded ? [httpDestination(url)] : [] }

/** The global `fetch`, whose last status is kept to be told. */
export const send: Fetch = async (to, init) => {
  const response = await fetch(to, init)
  status = response.status
  return response
}

/** Status and verdict of an answer, as `201 applied`. */
export function verdictOf({ status, headers }: Response): string {
  const [verdict] = headers.get('Fencing-Verdict')?.split(';') ?? []
  return verdict === undefined ? `${status}` : `${status} ${verdict}`
}

async function tellBalance(response: Response): Promise<void> {
  const { balance } = (await response.json()) as { balance: number }
  await tell(`${verdictOf(response)}, balance ${balance}`)
}

/** Credits the account under the lease, and tells how that ended. */
export async function credit(lease: HeldLease, amount: number): Promise<void> {
  try {
    const response = await lease.fetch(`${url}/credits`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ amount }),
      operationId: `credit-${amount}`,
      requireVerdict: guarded,
    })
    await tellBalance(response)
  } catch (error) {
    if (!(error instanceof WriteRefusedError)) throw error
    await tell(`${status} ${error.code}, ${error.generation} < ${error.highestGeneration}`)
    throw error
  }
}

/** Tells what is on the account now. */
export async function readBalance(lease: HeldLease): Promise<void> {
  await tellBalance(await lease.fetch(`${url}/balance`))
}
