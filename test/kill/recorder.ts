/** Writes the history of all processes of a run into one file, line by line as things happen. */

import { appendFileSync } from 'node:fs'
import type { CallOutcome, HistoryEvent, Invoke, Verb } from '../simulation/history.ts'
import type { WireAnswer } from './evidence.ts'

export interface Recorder {
  /**
   * Appended by one write, so that lines of several processes do not mix, nor get lost. A process
   * that is killed meanwhile leaves half a line, which must not spoil the next one.
   */
  record(event: HistoryEvent): void
  /** Names a call that nobody else names. */
  call(): string
}

export function recorder(path: string, name: string): Recorder {
  let calls = 0
  return {
    record: (event) => appendFileSync(path, `\n${JSON.stringify(event)}\n`),
    call: () => `${name}-${++calls}`,
  }
}

/** A request as the history sees it; `undefined` where it is none that is judged. */
export function invocationOf(call: string, request: WireCall): Invoke | undefined {
  const [, place, id = '', verb = ''] = request.path.split('/')
  const jobId = decodeURIComponent(id)
  if (place === 'leases') return ofLeases(call, jobId, verb, request.body)
  const token = tokenOf(request.headers.get('Fencing-Token'))
  if (token === undefined) return undefined
  const operationId = request.headers.get('Idempotency-Key')?.replaceAll('"', '')
  const { generation, leaseId } = token
  const known = { event: 'invoke', call, jobId, generation, leaseId } as const
  if (place === 'fences') return { ...known, verb: 'advance', destination: 'bank' }
  if (request.method === 'GET') return { ...known, verb: 'advance', destination: 'bank' }
  const destination = verb === 'elsewhere' ? 'third' : 'bank'
  return { ...known, verb: verb === 'write' ? 'write' : 'effect', destination, operationId }
}

export interface WireCall {
  readonly path: string
  readonly method: string
  readonly headers: Headers
  readonly body: string
}

/** `7;job="j";lease="x"`, of ids that need no escapes. */
function tokenOf(text: string | null): { generation: number; leaseId: string } | undefined {
  const parts = /^(\d+);job="[^"]*";lease="([^"]*)"$/.exec(text ?? '')
  return parts === null ? undefined : { generation: Number(parts[1]), leaseId: parts[2] ?? '' }
}

const LEASE_VERBS: readonly string[] = ['claim', 'renew', 'complete', 'release']

function ofLeases(call: string, jobId: string, verb: string, text: string): Invoke | undefined {
  if (!LEASE_VERBS.includes(verb)) return undefined
  const { generation, leaseId } = JSON.parse(text) as { generation?: number; leaseId?: string }
  return { event: 'invoke', call, verb: verb as Verb, jobId, generation, leaseId }
}

/**
 * `fetch` that records each request before it is sent, and each answer once it has come. `worker`
 * tells the proxy whose it is.
 */
export function recordingFetch({ record, call: name }: Recorder, worker = '') {
  return async (url: string, init: RequestInit): Promise<Response> => {
    const call = name()
    const bytes = init.body
    const body = bytes instanceof Uint8Array ? Buffer.from(bytes).toString() : String(bytes ?? '')
    const headers = new Headers(init.headers)
    headers.set('X-Worker', worker)
    const path = new URL(url).pathname
    const invoke = invocationOf(call, { path, method: init.method ?? 'GET', headers, body })
    if (invoke === undefined) return fetch(url, { ...init, headers })
    record(invoke)
    const response = await fetch(url, { ...init, headers })
    const text = await response.text()
    const { status } = response
    record({ ...answerOf(invoke, response, text), httpStatus: status } as WireAnswer)
    return new Response(status === 204 ? null : text, { status, headers: response.headers })
  }
}

interface Granted {
  readonly generation: number
  readonly leaseId: string
}

function answerOf(invoke: Invoke, response: Response, text: string): WireAnswer {
  const { call, verb } = invoke
  const body = parse(text)
  const unknown = { event: 'answer', call, outcome: 'unknown' } as const
  if (body === undefined) return unknown
  if (!['write', 'effect', 'advance'].includes(verb)) {
    const { status, lease } = body as { status?: string; lease?: Granted }
    if (typeof status !== 'string') return unknown
    const claimed = { generation: lease?.generation, leaseId: lease?.leaseId }
    return { ...unknown, outcome: status as CallOutcome, ...(status === 'claimed' && claimed) }
  }
  const [word, highest] = (response.headers.get('Fencing-Verdict') ?? '').split(';highest=')
  const highestGeneration = highest === undefined ? undefined : Number(highest)
  if (response.ok) {
    if (verb === 'advance') return { ...unknown, outcome: 'done', highestGeneration }
    const outcome = word === 'replayed' ? 'replayed' : 'applied'
    return { ...unknown, outcome, result: body, highestGeneration }
  }
  const { code, operationApplied } = body as { code?: string; operationApplied?: boolean }
  if (code === undefined || code === 'store_unavailable') return { ...unknown, code }
  return { ...unknown, outcome: 'refused', code, operationApplied, highestGeneration }
}

function parse(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}
