/** Of whom and what a request is: the job of its token, and its scope. */

import { RequestRefusedError } from '../errors.ts'
import { type FencingToken, scopeProblem } from '../token.ts'
import type { SentToken } from '../wire/headers.ts'
import type { FencingOptions } from './fencing-options.ts'

/**
 * The token as it is meant on a route: the job that it leaves out is the route's.
 * @throws RequestRefusedError `token_malformed` where nothing names the job, `token_rejected`
 * where the token is for another one
 */
export function tokenFor(routeJob: string | undefined, sent: SentToken): FencingToken {
  const { generation, leaseId } = sent
  const jobId = routeJob ?? sent.jobId
  if (jobId === undefined) {
    throw new RequestRefusedError('token_malformed', 'it names no job, nor does the route')
  }
  if (sent.jobId !== undefined && sent.jobId !== jobId) {
    throw new RequestRefusedError('token_rejected', 'it is for another job', { jobId, generation })
  }
  return { jobId, generation, leaseId }
}

/**
 * The scope of a request, of the option that says it.
 * @throws RequestRefusedError `forbidden` where the hook gives none, `request_malformed` where it
 * gives what is no scope; whatever the hook throws
 */
export async function scopeOf<Req>(
  scope: FencingOptions<Req>['scope'],
  request: Req,
): Promise<string> {
  if (typeof scope !== 'function') return scope ?? ''
  const given: unknown = await scope(request)
  // Never '': what belongs to nobody would share the fences of all who have no tenant.
  if (given === undefined || given === null) {
    throw new RequestRefusedError('forbidden', 'the request belongs to no scope')
  }
  const problem = scopeProblem(given)
  if (problem === undefined) return given as string
  throw new RequestRefusedError('request_malformed', `the scope ${problem}`)
}
