/** What the probe has sent and seen, and what can be told of it from outside. */

import { randomUUID } from 'node:crypto'
import type { RefusalCode } from '../errors.ts'
import {
  FENCING_TOKEN,
  FENCING_VERDICT,
  formatFencingToken,
  formatIdempotencyKey,
  IDEMPOTENCY_KEY,
  parseFencingVerdict,
} from '../wire/headers.ts'
import { parseProblem, problemStatus } from '../wire/problem.ts'
import type { ProbeOptions } from './probe.ts'
import { type Answer, begin, type Headers } from './probe-http.ts'

/** Said by a check where the destination did what it must not. */
export class Violation extends Error {}

/** An answer, read. */
export interface Seen {
  readonly what: string
  readonly generation: number
  readonly operation: string
  readonly operationId: string
  readonly status: number
  readonly body: string
  readonly success: boolean
  readonly replayed: boolean
  /** The word of the verdict, or else the code of the problem. */
  readonly word: string | undefined
  readonly highestGeneration: number | undefined
}

export interface Sending {
  readonly leaseId?: string | undefined
  readonly variant?: 1 | 2 | undefined
  /** In place of the headers of the protocol. */
  readonly headers?: Headers | undefined
}

export interface SlowWrite {
  readonly answer: Promise<Seen>
  finish(): void
}

const RETRY_MS = 50

/** One run of the probe against one destination. */
export class ProbeSession {
  /** Refusals that are not spelled as the protocol has them, each once. */
  readonly misspelled = new Set<string>()
  /** Answers without a `Fencing-Verdict`, each once. */
  readonly unproved = new Set<string>()
  /** Ends what a check that failed has left half sent. */
  readonly finishers = new Set<() => void>()
  readonly options: ProbeOptions
  readonly timeoutMs: number
  readonly id = randomUUID()
  baseUrl: string | URL
  #jobs = 0

  constructor(options: ProbeOptions, timeoutMs: number) {
    this.options = options
    this.timeoutMs = timeoutMs
    this.baseUrl = options.baseUrl
  }

  /** A job that nobody has heard of. No two jobs share an operation id, unless they are told to. */
  async job(operations?: string): Promise<ProbeJob> {
    this.#jobs += 1
    const name = `probe-${this.id}-${this.#jobs}`
    const jobId = (await this.options.newJob?.(name)) ?? name
    return new ProbeJob(this, jobId, operations ?? `${this.id}-${this.#jobs}`)
  }
}

/** A job, and the writes of its holders. */
export class ProbeJob {
  readonly jobId: string
  readonly #session: ProbeSession
  readonly #operations: string
  readonly #seen: Seen[] = []

  constructor(session: ProbeSession, jobId: string, operations: string) {
    this.#session = session
    this.jobId = jobId
    this.#operations = operations
  }

  leaseOf(generation: number): string {
    return `${this.#session.id}-${generation}`
  }

  /** Sends one write and reads its answer, whatever it is. */
  async send(generation: number, operation: string, sending: Sending = {}): Promise<Seen> {
    const call = await this.begin(generation, operation, sending)
    call.finish()
    return call.answer
  }

  /** Sends one write but for the last byte of its body: `finish` sends that too. */
  async begin(generation: number, operation: string, sending: Sending = {}): Promise<SlowWrite> {
    const { options, baseUrl, timeoutMs } = this.#session
    const { variant = 1, leaseId = this.leaseOf(generation) } = sending
    const operationId = `${this.#operations}-${operation}`
    const request = await options.write({ jobId: this.jobId, operationId, variant })
    const headers = {
      [FENCING_TOKEN]: formatFencingToken({ jobId: this.jobId, generation, leaseId }),
      [IDEMPOTENCY_KEY]: formatIdempotencyKey(operationId),
      ...sending.headers,
    }
    const call = begin(baseUrl, request, headers, timeoutMs)
    this.#session.finishers.add(call.finish)
    const answer = call.answer.then((each) =>
      this.#read({ generation, operation, operationId }, each),
    )
    answer.catch(() => {})
    await call.sent
    return { answer, finish: call.finish }
  }

  /** A write that must be applied now; `in_flight` is waited for. */
  async accepted(generation: number, operation: string, sending?: Sending): Promise<Seen> {
    const seen = await this.#settled(generation, operation, sending)
    if (!seen.success || seen.replayed) throw new Violation(`${seen.what}: it must be applied`)
    return seen
  }

  /** A write that must be known as a duplicate, and succeed. */
  async replays(first: Seen, generation: number): Promise<Seen> {
    const seen = await this.#settled(generation, first.operation)
    if (!seen.success || !seen.replayed) throw new Violation(`${seen.what}: it must be a replay`)
    return seen
  }

  /** A write that must be answered as before, marked as a replay. */
  async repeats(first: Seen, generation: number): Promise<void> {
    const { status, body, what } = await this.replays(first, generation)
    if (status !== first.status || body !== first.body) {
      const answers = `got ${status} ${body}, and the first had got ${first.status} ${first.body}`
      throw new Violation(`${what}: a replay gives the recorded answer again, but it ${answers}`)
    }
  }

  /** A write that must be refused, with whatever 4xx; the protocol wants this code. */
  async refused(
    code: RefusalCode,
    generation: number,
    operation: string,
    sending?: Sending,
  ): Promise<void> {
    this.expectRefusal(code, await this.#settled(generation, operation, sending))
  }

  expectRefusal(code: RefusalCode, seen: Seen): void {
    if (seen.status < 400 || seen.status > 499) {
      throw new Violation(`${seen.what}: it must be refused (${code})`)
    }
    const spelled = `${problemStatus(code)} ${code}`
    if (seen.word !== code || seen.status !== problemStatus(code)) {
      this.#session.misspelled.add(`${seen.what}, not ${spelled}`)
    }
  }

  /**
   * Holds the effects that the destination has, if it tells them, against the answers that it gave.
   * @throws Violation
   */
  async judgeEffects(): Promise<void> {
    const effects = await this.#session.options.effects?.(this.jobId)
    if (effects === undefined) return
    const twice = effects.find((id, index) => effects.indexOf(id) !== index)
    if (twice !== undefined) throw new Violation(`operation ${twice} took place twice`)
    for (const { operationId, what } of this.#seen.filter(({ success }) => success)) {
      if (!effects.includes(operationId)) throw new Violation(`${what}, and did not take place`)
    }
    const generations = effects.map((id) => this.#generationOf(id))
    const fall = generations.findIndex((each, index) => each < (generations[index - 1] ?? 0))
    if (fall > 0) {
      const [before, after] = [generations[fall - 1], generations[fall]]
      throw new Violation(`an effect of generation ${after} took place after one of ${before}`)
    }
  }

  /** The generation that an operation was applied under, by its answers. */
  #generationOf(operationId: string): number {
    const own = this.#seen.filter((seen) => seen.operationId === operationId)
    const applied = own.find(({ success, replayed }) => success && !replayed)
    if (applied !== undefined) return applied.generation
    throw new Violation(`operation ${operationId} took place, and was answered ${own[0]?.what}`)
  }

  async #settled(generation: number, operation: string, sending?: Sending): Promise<Seen> {
    const { timeoutMs } = this.#session
    for (let waitedMs = 0; ; waitedMs += RETRY_MS) {
      const seen = await this.send(generation, operation, sending)
      if (seen.word !== 'in_flight' || waitedMs >= timeoutMs) return seen
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }

  #read(
    sent: Pick<Seen, 'generation' | 'operation' | 'operationId'>,
    { status, headers, body }: Answer,
  ): Seen {
    const line = headers[FENCING_VERDICT.toLowerCase()]
    const verdict = parseFencingVerdict(typeof line === 'string' ? line : undefined)
    const word = verdict?.word ?? parseProblem(headers['content-type'] ?? null, body)?.code
    const { generation, operation } = sent
    const got = word === undefined ? `${status}` : `${status} ${word}`
    const what = `a write of generation ${generation} (operation ${operation}) got ${got}`
    if (verdict === undefined) this.#session.unproved.add(what)
    const seen = {
      ...sent,
      what,
      status,
      body,
      success: status >= 200 && status < 300,
      replayed: word === 'replayed' || headers['idempotent-replayed'] === 'true',
      word,
      highestGeneration: verdict?.highestGeneration,
    }
    this.#seen.push(seen)
    return seen
  }
}
