/**
 * A loopback proxy between workers and services: a balancer over the processes that are up, which
 * delays, duplicates, cuts and reorders what passes.
 */

import { Agent, createServer, type IncomingMessage, request, type Server } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Load } from './load.ts'
import { invocationOf, type Recorder } from './recorder.ts'

interface Faults {
  delayed: number
  duplicated: number
  requestsCut: number
  answersCut: number
  hungUp: number
}

export interface FaultyProxy {
  readonly server: Server
  readonly faults: Faults
  /** How many answers came from a service whose clock is far from ours. */
  readonly skewed: () => number
  /** From now on it passes everything on as it is. */
  heal(): void
}

/** A service that can be sent to. */
interface Target {
  readonly url: string
  readonly load: Load
}

interface Route {
  readonly recorder: Recorder
  /** Where a request goes; `undefined` where nobody is up who could take it. */
  readonly pick: (path: string) => Target | undefined
  /** Hears of each write that is told to be applied. */
  readonly acknowledged: Load
  /** The requests of a worker, by the header that names it. */
  readonly workerLoad: (name: string | undefined) => Load | undefined
}

interface Passing {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: Buffer
}

/** `random` gives numbers from 0 to below 1. */
export function faultyProxy(route: Route, random: () => number): FaultyProxy {
  const faults = { delayed: 0, duplicated: 0, requestsCut: 0, answersCut: 0, hungUp: 0 }
  let healed = false
  let skewed = 0
  const happens = (fault: keyof Faults, chance: number) => {
    if (healed || random() >= chance) return false
    faults[fault] += 1
    return true
  }
  const pass = async (passing: Passing) => {
    const target = route.pick(passing.path)
    if (target === undefined) throw new Error('nobody is up')
    return forward(target, passing, happens('hungUp', 0.01) ? 5 * random() : undefined)
  }
  const server = createServer(async (req, res) => {
    const load = route.workerLoad(req.headers['x-worker']?.toString())
    load?.began()
    try {
      const passing = await read(req)
      if (happens('requestsCut', 0.02)) return void res.destroy()
      // Requests behind this one overtake it.
      if (happens('delayed', 0.1)) await sleep(500 * random())
      if (happens('duplicated', 0.05)) void later(1_500 * random(), route.recorder, passing, pass)
      const answer = await pass(passing)
      if (isSkewed(answer.headers.date)) skewed += 1
      if (happens('answersCut', 0.05)) return void res.destroy()
      if (/^(applied|replayed)/.test(answer.headers['fencing-verdict'] ?? '')) {
        route.acknowledged.began()
      }
      res.writeHead(answer.status, answer.headers).end(answer.body)
    } catch {
      res.destroy()
    } finally {
      load?.ended()
    }
  })
  server.keepAliveTimeout = 60_000
  return {
    server,
    faults,
    skewed: () => skewed,
    heal() {
      healed = true
    },
  }
}

async function read(req: IncomingMessage): Promise<Passing> {
  const { method = 'GET', url: path = '/' } = req
  const headers = endToEnd(req)
  return { method, path, headers, body: await buffer(req) }
}

/** A second time, as a call of its own whose answer nobody hears. */
async function later(
  ms: number,
  recorder: Recorder,
  passing: Passing,
  pass: (passing: Passing) => Promise<unknown>,
): Promise<void> {
  await sleep(ms)
  const { method, path, body } = passing
  const wire = { method, path, headers: new Headers(passing.headers), body: body.toString() }
  const invoke = invocationOf(recorder.call(), wire)
  if (invoke !== undefined) recorder.record(invoke)
  await pass(passing).catch(() => {})
}

const agent = new Agent({ keepAlive: true })

/** @throws Error where no whole answer comes, or after `hangUpMs` */
function forward(
  { url, load }: Target,
  { method, path, headers, body }: Passing,
  hangUpMs?: number,
) {
  load.began()
  const answered = new Promise<Answered>((resolve, reject) => {
    const sent = request(`${url}${path}`, { method, headers, agent }, (answer) => {
      const head = { status: answer.statusCode ?? 0, headers: endToEnd(answer) }
      buffer(answer).then((bytes) => resolve({ ...head, body: bytes }), reject)
    })
    sent.on('error', reject)
    sent.end(body)
    if (hangUpMs !== undefined) setTimeout(() => sent.destroy(), hangUpMs)
  })
  return answered.finally(() => load.ended())
}

interface Answered {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: Buffer
}

/** What does not belong to one connection. */
function endToEnd({ headers }: IncomingMessage): Record<string, string> {
  const kept = Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name))
  return Object.fromEntries(kept.map(([name, value]) => [name, String(value)]))
}

const HOP_BY_HOP = [
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'transfer-encoding',
  'x-worker',
]

function isSkewed(date: string | undefined): boolean {
  return date !== undefined && Math.abs(Date.parse(date) - Date.now()) > 30 * 60_000
}
