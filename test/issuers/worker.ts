/**
 * A worker: holds the job, says its generation, and writes whenever it is told to, without another
 * look at the issuer. Arguments: the issuer, the job, the destination.
 */

import { createInterface } from 'node:readline'
import { formatFencingToken, formatIdempotencyKey } from 'writefence'
import { holders } from './holders.ts'

const [issuer = '', jobId = '', destination = ''] = process.argv.slice(2)
const token = await holders[issuer as keyof typeof holders](jobId)
console.log(token.generation)

for await (const operation of createInterface({ input: process.stdin })) {
  const response = await fetch(`${destination}/log`, {
    method: 'POST',
    headers: {
      'Fencing-Token': formatFencingToken(token),
      'Idempotency-Key': formatIdempotencyKey(operation),
    },
  })
  const [verdict] = response.headers.get('Fencing-Verdict')?.split(';') ?? []
  console.log(`${response.status} ${verdict}`)
}
