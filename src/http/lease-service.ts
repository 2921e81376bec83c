/** The lease service: the port of a lease store over HTTP. */

import type { LeaseStore } from '../lease/lease-store.ts'
import { checkMethods, type OptionNames } from '../options.ts'
import {
  type LeaseCall,
  type LeaseValue,
  readLeaseCall,
  spellLeaseAnswer,
} from '../wire/lease-messages.ts'
import { type Authorize, answering, checkAuthorize, jsonAnswer, type Service } from './service.ts'

/** How the lease service is set up. */
export interface LeaseServiceOptions<Req> {
  /**
   * Who may make which call. `call.verb` is `claim`, `renew`, `complete`, `release`, `get` for
   * workers; `list`, `raise`, `force-release`, `reopen`, `prune` are for operators only. The rest
   * of the call is what the caller has sent.
   */
  readonly authorize: Authorize<Req, LeaseCall>
}

const NAMES = { authorize: true } satisfies OptionNames<LeaseServiceOptions<unknown>>
const STORE_METHODS = ['claim', 'renew', 'complete', 'release'] as const

/**
 * `POST /leases/:jobId/claim | renew | complete | release`, `GET /leases/:jobId`, and the calls of
 * operators. 201 claimed, 200 done, 409 held (with Retry-After) or completed, 412 lost, 404 unknown
 * job, each with the store's answer as JSON; refusals are problems.
 * @throws TypeError where there is no store or no `authorize`, and for an unknown option
 */
export function leaseService<Req>(
  store: LeaseStore,
  options: LeaseServiceOptions<Req>,
): Service<Req> {
  checkMethods('leaseRoutes needs a lease store', store, STORE_METHODS)
  const authorize = checkAuthorize(options, NAMES)
  return ({ request, method, target, json }) =>
    answering(async () => {
      if (!isRoute(method, target)) return undefined
      const body = method === 'POST' ? await json() : undefined
      const call = readLeaseCall({ method, target, body: body ?? {} })
      if (call === undefined) return undefined
      await authorize(request, call)
      return jsonAnswer(spellLeaseAnswer(call.verb, await carryOut(store, call)))
    })
}

/** Asked before the body is read: that of somebody else's request is left alone. */
function isRoute(method: string, target: string): boolean {
  try {
    return readLeaseCall({ method, target }) !== undefined
  } catch {
    return true
  }
}

function carryOut(store: LeaseStore, call: LeaseCall): Promise<LeaseValue> {
  switch (call.verb) {
    case 'claim':
      return store.claim(call)
    case 'renew':
      return store.renew(call)
    case 'complete':
      return store.complete(call)
    case 'release':
      return store.release(call)
    case 'get':
      return store.get(call.jobId)
    case 'list':
      return store.list(call)
    case 'raise':
      return store.raise(call.jobId, call.atLeast)
    case 'force-release':
      return store.forceRelease(call.jobId)
    case 'reopen':
      return store.reopen(call.jobId)
    case 'prune':
      return store.prune(call)
  }
}
