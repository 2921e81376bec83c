/** A loopback proxy between workers and services that delays, duplicates, cuts and reorders. */

import { createServer, type Server } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { invocationOf, type Recorder } from './recorder.ts'

interface Faults {
  delayed: number
  duplicated: number
  requestsCut: number
  answersCut: number
}

export interface Proxy {
  readonly server: Server
  readonly faults: Faults
  /** From now on it passes everything on as it is. */
  heal(): void
}

/** `random` gives numbers from 0 to below 1; `target` is the base URL of what is behind. */
export function faultyProxy(target: string, random: () => number, recorder: Recorder): Proxy {
  const faults: Faults = { delayed: 0, duplicated: 0, requestsCut: 0, answersCut: 0 }
  let healed = false
  const happens = (chance: number) => !healed && random() < chance
  const server = createServer(async (req, res) => {
    const headers = new Headers()
    for (const [name, value] of Object.entries(req.headers)) {
      if (!HOP_BY_HOP.includes(name)) headers.set(name, String(value))
    }
    const body = await buffer(req)
    const url = `${target}${req.url}`
    const method = req.method ?? 'GET'
    const forward = () =>
      fetch(url, { method, headers, ...(body.length > 0 ? { body: new Uint8Array(body) } : {}) })
    if (happens(0.02)) {
      faults.requestsCut += 1
      return void res.destroy()
    }
    if (happens(0.1)) {
      // Requests behind this one overtake it.
      faults.delayed += 1
      await sleep(600 * random())
    }
    if (happens(0.05)) {
      faults.duplicated += 1
      const call = recorder.call()
      const wire = { url, method, headers, body: body.toString() }
      void sleep(1_500 * random()).then(async () => {
        const invoke = invocationOf(call, wire)
        if (invoke !== undefined) recorder.record(invoke)
        await forward().catch(() => {})
      })
    }
    try {
      const answer = await forward()
      const bytes = Buffer.from(await answer.arrayBuffer())
      if (happens(0.05)) {
        faults.answersCut += 1
        return void res.destroy()
      }
      const kept = [...answer.headers].filter(([name]) => !HOP_BY_HOP.includes(name))
      return void res.writeHead(answer.status, kept.flat()).end(bytes)
    } catch {
      return void res.destroy()
    }
  })
  return {
    server,
    faults,
    heal() {
      healed = true
    },
  }
}

// What belongs to one connection, not to the request; `expect` and lengths are fetch's own.
const HOP_BY_HOP = [
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'transfer-encoding',
]
