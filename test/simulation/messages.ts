/** What the parties of a simulated world send each other. */

import type { Answer, Verb } from './history.ts'

export interface Request {
  /** `leases`, or the name of a destination. */
  readonly to: string
  readonly verb: Verb
  readonly jobId: string
  readonly scope?: string | undefined
  /** Of the token, or of the lease. */
  readonly generation?: number | undefined
  readonly leaseId?: string | undefined
  readonly owner?: string | undefined
  readonly ttlMs?: number | undefined
  readonly operationId?: string | undefined
  readonly atLeast?: number | undefined
  /** The effect of a `write` throws after it has written. */
  readonly throws?: boolean | undefined
}

/** The answer as the history has it, and what else a worker goes by. */
export interface Reply extends Omit<Answer, 'event' | 'call'> {
  readonly retryable?: boolean | undefined
  /** Of `advance`: operations of older generations that may still take place. */
  readonly older?: number | undefined
  /** What a call of the product's own port returned or threw, for a real worker. */
  readonly raw?: { readonly value: unknown } | { readonly error: unknown } | undefined
}

/** No answer came, or one that proves nothing. */
export const NO_ANSWER: Reply = { outcome: 'unknown' }
