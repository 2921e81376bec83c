import type { FencingToken } from '../../token.ts'
import { type FenceAnswer, readFenceAnswer, spellFenceCall } from '../../wire/fence-messages.ts'
import { FENCING_TOKEN, formatFencingToken } from '../../wire/headers.ts'
import { problemError } from '../../wire/problem.ts'
import { HttpService, type HttpServiceOptions, unexpected } from './http-service.ts'

/**
 * A destination that is reached over its fence service, for the `destinations` of `runWithLease`.
 * `baseUrl` is where `fenceRoutes` are mounted, without `/fences`.
 *
 * `advance` rejects with WriteRefusedError `stale` or `conflict` where the token is not the newest
 * itself, with StoreUnavailableError where the service cannot be reached; both directions can be
 * repeated at will.
 *
 * @throws TypeError or RangeError naming the option, RangeError from `advance` for the job ids `.`
 * and `..`, which no URL can carry in its path
 */
export function httpDestination(
  baseUrl: string | URL,
  options: HttpServiceOptions = {},
): { advance(token: FencingToken): Promise<FenceAnswer> } {
  const service = new HttpService(baseUrl, options)
  return {
    async advance({ jobId, generation, leaseId }) {
      const token = { jobId, generation, leaseId }
      const request = spellFenceCall({ verb: 'advance', jobId })
      const answer = await service.send(request, { [FENCING_TOKEN]: formatFencingToken(token) })
      const { problem, retryAfterMs } = answer
      if (problem !== undefined) throw problemError(problem, token, retryAfterMs)
      if (answer.status !== 200) throw unexpected(answer)
      try {
        return readFenceAnswer(answer.body)
      } catch (error) {
        throw unexpected(answer, error)
      }
    },
  }
}
