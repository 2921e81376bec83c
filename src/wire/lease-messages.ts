/**
 * The messages of the lease service, both ways: client and server spell and read them here, so
 * that they cannot drift apart. A message carries the port's values as they are: `status` tells
 * them apart, the HTTP status repeats it for people and proxies.
 *
 * Members that are not known are ignored; those that are known are checked, nothing is coerced.
 */

import {
  checkAtLeast,
  checkClaim,
  checkLeaseKey,
  checkLeasePrune,
  checkLeaseQuery,
  checkRenewal,
} from '../lease/lease-arguments.ts'
import type {
  ClaimRequest,
  ClaimResult,
  CompleteResult,
  Lease,
  LeaseKey,
  LeasePruneRequest,
  LeaseQuery,
  LeaseRecord,
  ReleaseResult,
  RenewResult,
} from '../lease/lease-store.ts'
import { checkDuration } from '../options.ts'
import { checkGeneration, checkId } from '../token.ts'
import {
  boolean,
  fields,
  type Message,
  oneOf,
  optional,
  readingRequest,
  readTarget,
  spellJobPath,
  type WireAnswer,
  type WireRequest,
  wholeNumber,
} from './message.ts'

/** One call of the lease service: a verb of the port with its arguments. */
export type LeaseCall =
  | ({ readonly verb: 'claim' } & ClaimRequest)
  | ({ readonly verb: 'renew' } & LeaseKey & { readonly ttlMs: number })
  | ({ readonly verb: 'complete' | 'release' } & LeaseKey)
  | { readonly verb: 'raise'; readonly jobId: string; readonly atLeast: number }
  | { readonly verb: 'get' | 'force-release' | 'reopen'; readonly jobId: string }
  | ({ readonly verb: 'list' } & LeaseQuery)
  | ({ readonly verb: 'prune' } & LeasePruneRequest)

/** What the port answers to a call. */
export type LeaseValue =
  | ClaimResult
  | RenewResult
  | CompleteResult
  | ReleaseResult
  | LeaseRecord
  | readonly LeaseRecord[]
  | { readonly pruned: number }
  | undefined

const ENDINGS = ['superseded', 'released', 'completed', 'unknown_job'] as const
const STATUSES = ['leased', 'released', 'completed'] as const
// Outside /leases/, where a job of this name would be in its way.
const PRUNE_PATH = '/lease-maintenance/prune'

/**
 * The request that makes a call; `target` is relative to the base URL of the service.
 * @throws RangeError for the job ids `.` and `..`, which no URL can carry in its path
 */
export function spellLeaseCall(call: LeaseCall): WireRequest {
  switch (call.verb) {
    case 'list':
      return { method: 'GET', target: `/leases${spellQuery(call)}` }
    case 'get':
      return { method: 'GET', target: spellJobPath('leases', call.jobId) }
    case 'prune': {
      const { olderThanMs, limit } = call
      return { method: 'POST', target: PRUNE_PATH, body: { olderThanMs, limit } }
    }
    default: {
      const { verb, jobId, ...body } = call
      return { method: 'POST', target: spellJobPath('leases', jobId, verb), body }
    }
  }
}

/**
 * Reads a request of the lease service; `undefined` where it is for none of its routes.
 * @throws RequestRefusedError `request_malformed`, before anything was changed
 */
export function readLeaseCall(request: WireRequest): LeaseCall | undefined {
  return readingRequest(() => readCall(request))
}

/** The answer that carries what the port answered. */
export function spellLeaseAnswer(verb: LeaseCall['verb'], value: LeaseValue): WireAnswer {
  // Its own body: a 404 of some other server must not read as "no such job".
  if (value === undefined) return { status: 404, body: { status: 'unknown_job' } }
  if (Array.isArray(value)) return { status: 200, body: { leases: value } }
  if ('status' in value) {
    if (value.status === 'lost') return { status: 412, body: value }
    if (value.status === 'claimed') return { status: 201, body: value }
    if (value.status === 'held')
      return { status: 409, body: value, retryAfterMs: value.retryAfterMs }
    if (verb === 'claim') return { status: 409, body: value }
  }
  return { status: 200, body: value }
}

/** The readers of answers. @throws TypeError or RangeError where the body is no such answer */
export const leaseAnswers = {
  claim(body: unknown): ClaimResult {
    const message = fields(body)
    const status = oneOf(message, 'status', ['claimed', 'held', 'completed'])
    if (status === 'claimed') return { status, lease: readLease(message.lease) }
    const generation = checkGeneration('generation', message.generation)
    if (status === 'completed') return { status, generation }
    return {
      status,
      owner: checkId('owner', message.owner),
      generation,
      leaseUntil: wholeNumber(message, 'leaseUntil'),
      retryAfterMs: wholeNumber(message, 'retryAfterMs'),
    }
  },
  renew(body: unknown): RenewResult {
    const message = fields(body)
    const status = oneOf(message, 'status', ['renewed', 'lost'])
    if (status === 'lost') return { status, reason: oneOf(message, 'reason', ENDINGS) }
    return { status, lease: readLease(message.lease), lapsed: boolean(message, 'lapsed') }
  },
  complete(body: unknown): CompleteResult {
    const message = fields(body)
    const status = oneOf(message, 'status', ['completed', 'lost'])
    if (status === 'lost') return { status, reason: oneOf(message, 'reason', ENDINGS) }
    return { status, lapsed: boolean(message, 'lapsed') }
  },
  release(body: unknown): ReleaseResult {
    const message = fields(body)
    const status = oneOf(message, 'status', ['released', 'lost'])
    if (status === 'lost') return { status, reason: oneOf(message, 'reason', ENDINGS) }
    return { status }
  },
  record: readRecord,
  /** Where the job may be unknown: get, force-release, reopen. */
  maybeRecord(body: unknown): LeaseRecord | undefined {
    return fields(body).status === 'unknown_job' ? undefined : readRecord(body)
  },
  list(body: unknown): LeaseRecord[] {
    const { leases } = fields(body)
    if (!Array.isArray(leases)) throw new TypeError('leases must be an array')
    return leases.map(readRecord)
  },
  prune(body: unknown): { pruned: number } {
    return { pruned: wholeNumber(fields(body), 'pruned') }
  },
}

function readCall({ method, target, body }: WireRequest): LeaseCall | undefined {
  const [route] = target.split('?')
  if (method === 'POST' && route === PRUNE_PATH) return { verb: 'prune', ...checkLeasePrune(body) }
  // Other routes are not judged here, however they are spelled.
  if (route !== '/leases' && !route?.startsWith('/leases/')) return undefined
  const { path, query } = readTarget(target)
  const [, id, verb, ...rest] = path
  if (rest.length > 0) return undefined
  if (method === 'GET' && id === undefined) return readList(query)
  if (method === 'GET' && verb === undefined) return { verb: 'get', jobId: checkId('jobId', id) }
  if (method !== 'POST' || id === undefined) return undefined
  switch (verb) {
    case 'claim':
      return { verb, ...checkClaim(forJob(id, body)) }
    case 'renew':
      return { verb, ...checkRenewal(forJob(id, body)) }
    case 'complete':
    case 'release':
      return { verb, ...checkLeaseKey(forJob(id, body)) }
    case 'raise': {
      const { jobId, atLeast } = forJob(id, body)
      return { verb, jobId: checkId('jobId', jobId), atLeast: checkAtLeast(atLeast) }
    }
    case 'force-release':
    case 'reopen':
      return { verb, jobId: checkId('jobId', id) }
    default:
      return undefined
  }
}

/** A body that names another job than the path does is some mix-up: acting on either is a guess. */
function forJob(jobId: string, body: unknown): Message {
  const message = fields(body)
  if (message.jobId !== undefined && message.jobId !== jobId) {
    throw new RangeError('jobId must be the one in the path')
  }
  return { ...message, jobId }
}

function readLease(value: unknown): Lease {
  const message = fields(value, 'lease')
  return {
    ...checkRenewal(message),
    leaseUntil: wholeNumber(message, 'leaseUntil'),
  }
}

function readRecord(body: unknown): LeaseRecord {
  const message = fields(body)
  return {
    jobId: checkId('jobId', message.jobId),
    generation: checkGeneration('generation', message.generation),
    status: oneOf(message, 'status', STATUSES),
    owner: optional(message.owner, (value) => checkId('owner', value)),
    leaseUntil: optional(message.leaseUntil, () => wholeNumber(message, 'leaseUntil')),
    ttlMs: optional(message.ttlMs, (value) => checkDuration('ttlMs', value)),
    expired: optional(message.expired, () => boolean(message, 'expired')),
  }
}

function readList(query: Message): LeaseCall {
  const { expired, limit } = query
  return {
    verb: 'list',
    ...checkLeaseQuery({
      ...query,
      expired: optional(expired, () => oneOf(query, 'expired', ['true', 'false']) === 'true'),
      // Digits only: Number() takes '1e2', ' 7 ' and '' too.
      limit: optional(limit, (text) => (/^[1-9][0-9]*$/.test(String(text)) ? Number(text) : text)),
    }),
  }
}

function spellQuery({ status, owner, expired, after, limit }: LeaseQuery): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries({ status, owner, expired, after, limit })) {
    if (value !== undefined) query.set(name, String(value))
  }
  return query.size === 0 ? '' : `?${query}`
}
