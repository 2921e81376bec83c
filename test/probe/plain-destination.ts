/**
 * A destination on bare `node:http`, written from docs/protocol.md and sharing no code with the
 * package. Each part of the protocol is a method of its own, so that a broken destination is this
 * one with one method replaced.
 */

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Write {
  readonly jobId: string
  readonly generation: number
  readonly leaseId: string
  readonly operationId: string
  readonly fingerprint: string
}

interface Fence {
  generation: number
  leaseId: string
}

export interface Answer {
  readonly status: number
  readonly word: string
  readonly highest?: number
  readonly body?: object
}

interface Recorded {
  readonly fingerprint: string
  /** `undefined` while it runs. */
  body: object | undefined
}

export class PlainDestination {
  /** What took place: the operation ids of each job, in order. */
  readonly effects = new Map<string, string[]>()
  fences = new Map<string, Fence>()
  records = new Map<string, Recorded>()
  readonly #server = createServer((req, res) => this.receive(req, res))

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  /** What is in memory only is gone; fences and records are in a database. */
  async restart(): Promise<undefined> {}

  async receive(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const body = await read(req)
    const write = this.parse(req, body)
    this.send(res, 'word' in write ? write : await this.decide(write))
  }

  parse(req: IncomingMessage, body: string): Write | Answer {
    const { 'fencing-token': tokens, 'idempotency-key': keys = [] } = req.headersDistinct
    if (tokens === undefined) return { status: 428, word: 'token_required' }
    const token = /^([1-9]\d{0,14});job="([^"\\]+)";lease="([^"\\]+)"$/.exec(tokens[0] ?? '')
    if (token === null || tokens.length > 1) return { status: 400, word: 'token_malformed' }
    const key = /^"([^"\\]+)"$/.exec(keys[0] ?? '')
    if (key === null || keys.length > 1) return { status: 400, word: 'operation_id_malformed' }
    const [, generation, jobId = '', leaseId = ''] = token
    const fingerprint = createHash('sha256').update(body).digest('hex')
    return {
      jobId,
      leaseId,
      generation: Number(generation),
      operationId: key[1] ?? '',
      fingerprint,
    }
  }

  /** The verdict and the effect: nothing comes between them, as in one transaction. */
  decide(write: Write): Answer | Promise<Answer> {
    return this.admit(write) ?? this.known(write) ?? this.apply(write)
  }

  admit(write: Write): Answer | undefined {
    const fence = this.fences.get(write.jobId)
    const highest = fence?.generation ?? 0
    if (write.generation < highest) return { status: 412, word: 'stale', highest }
    if (write.generation === highest && write.leaseId !== fence?.leaseId) {
      return { status: 409, word: 'conflict', highest }
    }
    this.advance(write)
    return undefined
  }

  advance({ jobId, generation, leaseId }: Write): void {
    this.fences.set(jobId, { generation, leaseId })
  }

  known(write: Write): Answer | undefined {
    const record = this.records.get(this.keyOf(write))
    if (record === undefined) return undefined
    const highest = write.generation
    if (record.fingerprint !== write.fingerprint) return { status: 422, word: 'mismatch', highest }
    if (record.body === undefined) return this.busy(write)
    return { status: 201, word: 'replayed', highest, body: record.body }
  }

  busy({ generation }: Write): Answer {
    return { status: 409, word: 'in_flight', highest: generation }
  }

  keyOf({ jobId, operationId }: Write): string {
    return JSON.stringify([jobId, operationId])
  }

  apply(write: Write): Answer | Promise<Answer> {
    const body = this.effect(write)
    this.records.set(this.keyOf(write), { fingerprint: write.fingerprint, body })
    return { status: 201, word: 'applied', highest: write.generation, body }
  }

  effect({ jobId, operationId }: Write): object {
    const done = [...(this.effects.get(jobId) ?? []), operationId]
    this.effects.set(jobId, done)
    return { number: done.length }
  }

  send(res: ServerResponse, { status, word, highest, body }: Answer): void {
    res.statusCode = status
    const verdict = highest === undefined ? word : `${word};highest=${highest}`
    res.setHeader('Fencing-Verdict', verdict)
    if (word === 'replayed') res.setHeader('Idempotent-Replayed', 'true')
    const isProblem = status >= 400
    res.setHeader('Content-Type', isProblem ? 'application/problem+json' : 'application/json')
    res.end(JSON.stringify(isProblem ? { code: word, retryable: word === 'in_flight' } : body))
  }
}

export async function read(req: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of req.setEncoding('utf8')) text += chunk
  return text
}
