/** A third system that deduplicates by operation id and checks the token, and is never killed. */

import { randomUUID } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Told } from './engines/bank.ts'
import type { Traced } from './evidence.ts'

export interface ThirdSystem {
  readonly server: Server
  /** What has taken place, in order. */
  readonly effects: readonly Traced[]
}

export function thirdSystem(): ThirdSystem {
  const effects: Traced[] = []
  const known = new Map<string, Told>()
  const highest = new Map<string, number>()
  const server = createServer(async (req, res) => {
    const answer = (status: number, body: unknown) =>
      res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
    const [, , job = '', operation = ''] = (req.url ?? '').split('/')
    if (req.method === 'GET') return answer(200, known.get(`${job}/${operation}`) ?? null)
    const { jobId, generation, leaseId, operationId } = JSON.parse(await text(req)) as Traced
    const key = `${jobId}/${operationId}`
    const before = known.get(key)
    if (before !== undefined) return answer(200, before)
    if (generation < (highest.get(jobId) ?? 0)) return answer(412, { code: 'stale' })
    highest.set(jobId, generation)
    const effect = { event: 'applied', destination: 'third', jobId, generation } as const
    const told = { nonce: randomUUID() }
    effects.push({ ...effect, leaseId, operationId, ...told })
    known.set(key, told)
    await sleep(15 * Math.random())
    return answer(200, told)
  })
  return { server, effects }
}
