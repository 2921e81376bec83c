/** A destination that says one thing after the other, and what was sent to it. */

import type { HeldLease } from 'writefence'
import { type RunBench, settled } from './run-bench.ts'

export const PLACE = 'http://destination.example/credits'
export const POST = { method: 'POST', operationId: 'op-1' }
export const APPLIED = { 'Fencing-Verdict': 'applied;highest=1' }

export interface Sent {
  readonly url: string
  readonly init: RequestInit
  readonly headers: Headers
  readonly body: string | undefined
  readonly at: number
}
export type Answer = Response | Error | ((sent: Sent) => Response | Promise<Response>)

/** Runs the handler against a destination that says one thing after the other. */
export async function fetching(
  bench: RunBench,
  answers: readonly Answer[],
  handler: (lease: HeldLease, sent: Sent[]) => Promise<unknown>,
  options: object = {},
) {
  const sent: Sent[] = []
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const body = init.body == null ? undefined : new TextDecoder().decode(init.body as Uint8Array)
    const one = { url, init, headers: new Headers(init.headers), body, at: Date.now() }
    sent.push(one)
    const answer = answers[Math.min(sent.length, answers.length) - 1]
    if (answer instanceof Error) throw answer
    return typeof answer === 'function' ? answer(one) : ((answer as Response).clone() as Response)
  }
  const outcome = await settled(bench.run({ fetch, ...options }, (lease) => handler(lease, sent)))
  return { sent, outcome }
}

export function ok(headers: Record<string, string> = APPLIED): Response {
  return new Response('{"balance":1}', { status: 201, headers })
}

export function refusal(status: number, code: string, more: object = {}, headers = {}): Response {
  return new Response(JSON.stringify({ code, retryable: code === 'in_flight', ...more }), {
    status,
    headers: {
      'Content-Type': 'application/problem+json',
      'Fencing-Verdict': `${code};highest=9`,
      ...headers,
    },
  })
}
