/** What a caller wants to write, and how it is checked. */

import { checkChoice } from '../options.ts'
import { checkId, checkScope, checkToken, type FencingToken } from '../token.ts'
import { BoundFence } from './bound-fence.ts'
import type { WriteOrder } from './units.ts'

/** One write: under which token, and which operation it is. */
export interface WriteIntent {
  readonly token: FencingToken
  /**
   * Names the effect within its job: the same when the same worker retries, and when the next
   * generation tries again. Without it stale writes are refused, but duplicates are not known.
   */
  readonly operationId?: string | undefined
  /** A digest of the request: the same operation id with another one is a `mismatch`. */
  readonly fingerprint?: string | undefined
  /** The tenant or trust domain, part of every key; `''` unless told. */
  readonly scope?: string | undefined
  /**
   * `'report'` applies whatever the verdict, and only publishes what it would have refused: for
   * watching a guard before it is switched on. `'enforce'` unless told.
   */
  readonly mode?: 'enforce' | 'report' | undefined
}

const MEMBERS: readonly string[] = ['token', 'operationId', 'fingerprint', 'scope', 'mode']

/** @throws TypeError or RangeError naming the member; a copy, so that later changes do not count */
export function checkIntent(intent: WriteIntent): WriteOrder {
  if (typeof intent !== 'object' || intent === null) {
    throw new TypeError('the write intent must be an object { token, operationId?, … }')
  }
  // It has a token too, and would lose its operation id and its scope on the way.
  if (intent instanceof BoundFence) {
    throw new TypeError('a bound fence is no write intent: call its own verbs')
  }
  for (const name of Object.keys(intent)) {
    // A member that is misspelled is a check that is off.
    if (!MEMBERS.includes(name)) throw new TypeError(`a write intent has no member ${name}`)
  }
  const { token, operationId, fingerprint, scope, mode } = intent
  const checked = checkToken(token)
  return {
    job: { scope: checkScope(scope), jobId: checked.jobId },
    token: checked,
    operationId: operationId === undefined ? undefined : checkId('operationId', operationId),
    fingerprint: fingerprint === undefined ? undefined : checkId('fingerprint', fingerprint),
    mode: checkChoice('mode', mode, ['enforce', 'report']),
  }
}
