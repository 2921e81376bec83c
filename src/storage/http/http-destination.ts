import type { FencingToken } from '../../token.ts'
import { type FenceAnswer, readFenceAnswer, spellFenceCall } from '../../wire/fence-messages.ts'
import { FENCING_TOKEN, formatFencingToken } from '../../wire/headers.ts'
import { problemError } from '../../wire/problem.ts'
import { HttpService, type HttpServiceOptions } from './http-service.ts'

/** A destination in another process. Both verbs can be repeated at will. */
export interface HttpDestination {
  /** Makes every older token stale there. @throws WriteRefusedError `stale` or `conflict` */
  advance(token: FencingToken): Promise<FenceAnswer>
  /** Ends the job there: the last thing before it is completed. @throws as `advance` does */
  seal(token: FencingToken): Promise<FenceAnswer>
}

/**
 * A destination that is reached over its fence service, for the `destinations` of `runWithLease`.
 * `baseUrl` is where `fenceRoutes` are mounted, without `/fences`.
 *
 * Its verbs reject with WriteRefusedError `stale` or `conflict` where the token is not the newest
 * itself, and with StoreUnavailableError where the service cannot be reached.
 *
 * @throws TypeError or RangeError naming the option, RangeError from the verbs for the job ids
 * `.` and `..`, which no URL can carry in its path
 */
export function httpDestination(
  baseUrl: string | URL,
  options: HttpServiceOptions = {},
): HttpDestination {
  const service = new HttpService(baseUrl, options)
  const send = async (verb: 'advance' | 'seal', { jobId, generation, leaseId }: FencingToken) => {
    const token = { jobId, generation, leaseId }
    const request = spellFenceCall({ verb, jobId })
    const answer = await service.send(request, { [FENCING_TOKEN]: formatFencingToken(token) })
    const { problem, retryAfterMs } = answer
    if (problem !== undefined) throw problemError(problem, token, retryAfterMs)
    if (answer.status !== 200) throw answer.unexpected()
    try {
      return readFenceAnswer(answer.body)
    } catch (error) {
      throw answer.unexpected(error)
    }
  }
  return { advance: (token) => send('advance', token), seal: (token) => send('seal', token) }
}
