/** A worker, or an operator, that goes through a list of steps: plain data, so it can be hashed. */

import type { Reply, Request } from './messages.ts'

/** Without an id, it is an operation that nobody can ask for again. */
type Named = { readonly to: string; readonly operationId?: string | undefined }

export type Step = { readonly tries?: number } & (
  | { readonly verb: 'claim' | 'renew' | 'complete' | 'release' }
  | { readonly verb: 'advance' | 'seal'; readonly to: string }
  | ({ readonly verb: 'write'; readonly throws?: boolean } & Named)
  | ({ readonly verb: 'effect' } & Named)
  | { readonly verb: 'reopen_lease' | 'force_release' }
  | { readonly verb: 'raise'; readonly atLeast: number }
  | { readonly verb: 'reopen'; readonly to: string }
  | ({ readonly verb: 'resolve' } & Named)
)

export interface Script {
  readonly name: string
  readonly jobId?: string
  readonly scope?: string
  /** The token of a worker that has claimed before this world began. */
  readonly token?: { readonly generation: number; readonly leaseId?: string }
  readonly steps: readonly Step[]
}

/**
 * After an answer: the next step; the same again, then the next; the same again, then the end; the
 * same once time has passed, then the end; the end.
 */
type Turn = 'next' | 'retry' | 'insist' | 'wait' | 'stop'

/** Where the lease service is. */
export const LEASES = 'leases'
export const TTL_MS = 1000
const TRIES = 2

export class ScriptWorker {
  readonly name: string
  readonly #script: Script
  #at = 0
  #tries = 0
  #sent = 0
  /** Sent and not answered, waiting for time to pass, or done with. */
  #status: 'ready' | 'sent' | 'waiting' | 'ended' = 'ready'
  #generation: number | undefined
  #leaseId: string | undefined

  constructor(script: Script) {
    this.name = script.name
    this.#script = script
    this.#generation = script.token?.generation
    this.#leaseId = script.token?.leaseId
  }

  /** What it sends now, if it is its turn: one request at a time. */
  next(): { readonly seq: number; readonly request: Request } | undefined {
    const step = this.#script.steps[this.#at]
    if (this.#status !== 'ready' || step === undefined) return undefined
    this.#status = 'sent'
    this.#sent += 1
    const { verb, tries: _, ...rest } = step
    const { jobId = 'job', scope } = this.#script
    if (verb === 'claim') this.#leaseId = `${this.name}-${this.#at}`
    const known = { generation: this.#generation, leaseId: this.#leaseId, owner: this.name }
    const request = { to: LEASES, verb, jobId, scope, ttlMs: TTL_MS, ...known, ...rest }
    return { seq: this.#sent, request }
  }

  /** The answer to what it sent last: it waits for one at a time. */
  hear(_: number, reply: Reply): void {
    if (this.#status !== 'sent') return
    this.#status = 'ready'
    const turn = this.#judge(reply)
    this.#tries += 1
    const { tries = TRIES } = this.#script.steps[this.#at] ?? {}
    const again = this.#tries < tries
    if (turn === 'next' || (turn === 'retry' && !again)) this.#goOn()
    else if (turn === 'stop' || !again) this.#status = 'ended'
    else if (turn === 'wait') this.#status = 'waiting'
  }

  timePassed(): void {
    if (this.#status === 'waiting') this.#status = 'ready'
  }

  crash(): void {
    this.#status = 'ended'
  }

  get ended(): boolean {
    return this.#status === 'ended' || this.#at >= this.#script.steps.length
  }

  digest(): string {
    const { name } = this
    return `${name} ${this.#at} ${this.#tries} ${this.#sent} ${this.#status} ${this.#generation}`
  }

  #goOn(): void {
    this.#at += 1
    this.#tries = 0
  }

  #judge(reply: Reply): Turn {
    const { verb } = this.#script.steps[this.#at] ?? {}
    switch (reply.outcome) {
      case 'claimed':
        this.#generation = reply.generation
        return 'next'
      case 'held':
        return 'wait'
      case 'completed':
        return verb === 'claim' ? 'stop' : 'next'
      case 'lost':
        return 'stop'
      case 'refused':
        if (reply.code === 'stale' || reply.code === 'conflict') return 'stop'
        return reply.retryable ? 'retry' : 'next'
      case 'unknown':
        return verb === 'claim' || verb === 'advance' ? 'insist' : 'retry'
      case 'failed':
        return 'retry'
      case 'done':
        // Rule 10: the new holder waits until nothing older is under way, and gives up otherwise.
        return (reply.older ?? 0) > 0 ? 'insist' : 'next'
      default:
        return 'next'
    }
  }
}
