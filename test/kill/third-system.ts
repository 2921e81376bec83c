/** A third system that deduplicates by operation id and checks the token, and is never killed. */

import { createServer, type Server } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Applied } from '../simulation/history.ts'

export interface ThirdSystem {
  readonly server: Server
  /** What has taken place, in order. */
  readonly effects: readonly Applied[]
}

export function thirdSystem(): ThirdSystem {
  const effects: Applied[] = []
  const known = new Map<string, { seq: number }>()
  const highest = new Map<string, number>()
  const server = createServer(async (req, res) => {
    const answer = (status: number, body: unknown) =>
      res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
    const [, , job = '', operation = ''] = (req.url ?? '').split('/')
    if (req.method === 'GET') return answer(200, known.get(`${job}/${operation}`) ?? null)
    const { jobId, generation, leaseId, operationId } = JSON.parse(await text(req)) as Applied
    const key = `${jobId}/${operationId}`
    const before = known.get(key)
    if (before !== undefined) return answer(200, before)
    if (generation < (highest.get(jobId) ?? 0)) return answer(412, { code: 'stale' })
    highest.set(jobId, generation)
    const effect = { event: 'applied', destination: 'third', jobId, generation } as const
    effects.push({ ...effect, leaseId, operationId })
    const seq = { seq: effects.length }
    known.set(key, seq)
    return answer(200, seq)
  })
  return { server, effects }
}
