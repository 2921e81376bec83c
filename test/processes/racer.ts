/** One side of a race for leases: does its part of each round when told, and prints the answers. */

import { createInterface } from 'node:readline'
import type { ClaimResult, CompleteResult, LeaseKey, ReleaseResult } from 'writefence'
import { openSqlite, SqliteLeaseStore } from 'writefence/sqlite'

const [path = '', part = '', owner = ''] = process.argv.slice(2)
const store = new SqliteLeaseStore(openSqlite(path))

function play(key: LeaseKey): Promise<ClaimResult | CompleteResult | ReleaseResult> {
  if (part === 'complete') return store.complete(key)
  if (part === 'release') return store.release(key)
  return store.claim({ jobId: key.jobId, owner, ttlMs: 60_000 })
}

console.log('ready')
for await (const line of createInterface({ input: process.stdin })) {
  const answers: unknown[] = []
  // One after the other, so that both sides stand at the same job most of the time.
  for (const key of JSON.parse(line) as LeaseKey[]) {
    answers.push(await play(key).catch((error: unknown) => ({ status: String(error) })))
  }
  console.log(JSON.stringify(answers))
}
