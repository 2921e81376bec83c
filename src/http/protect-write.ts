/** `protect: 'write'`: the handler writes through the fence, and must not forget to. */

import { publishFault } from '../events.ts'
import type { StoreMode } from '../guard/fence-store.ts'
import { PROBLEM_JSON } from '../wire/problem.ts'
import type { Answer } from './exchange.ts'
import type { RequestFence } from './request-fence.ts'

const FORGOTTEN = {
  type: 'about:blank',
  title: 'Internal Server Error',
  status: 500,
  detail:
    'The handler answered with success without a write through fence.of(req) that has ended well:' +
    ' whether what it did is guarded is not known here, and a duplicate would get this answer' +
    ' too. Use fence.of(req).write or .effect, and await it; or say fence.of(req).noEffect().',
}

/**
 * Catches a success that is not backed by a write, an effect or `noEffect()`: stale and duplicate
 * requests would get it too. The answer of its own is sent instead; in mode `'report'` it is only
 * told.
 */
export function insteadOfUnguarded<Tx, Mode extends StoreMode>(
  fence: RequestFence<Tx, Mode>,
  status: number,
): Answer | undefined {
  const success = status >= 200 && status < 300
  if (!success || fence.accounted || !fence.fenced) return undefined
  const { token, operationId, scope, mode } = fence.intent
  const { jobId, generation } = token
  publishFault({ fault: 'unguarded_success', scope, jobId, generation, operationId })
  if (mode === 'report') return undefined
  return {
    status: FORGOTTEN.status,
    headers: { 'Content-Type': PROBLEM_JSON, 'Cache-Control': 'no-store' },
    body: JSON.stringify(FORGOTTEN),
  }
}
