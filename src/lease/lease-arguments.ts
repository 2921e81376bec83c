/**
 * What the verbs of a lease store take: checked and copied, the same by every engine, by the
 * worker and on the wire. Each check throws `TypeError` or `RangeError` naming the argument.
 */

import { randomBytes } from 'node:crypto'
import { checkChoice, checkCount, checkDuration } from '../options.ts'
import { checkGeneration, checkId, MAX_GENERATION } from '../token.ts'

/** A leaseId of 128 random bits: nobody can guess it, no two claims share it. */
export function newLeaseId(): string {
  return randomBytes(16).toString('hex')
}

export function checkClaim(value: unknown) {
  const { jobId, owner, ttlMs, leaseId } = members('request', value)
  return {
    jobId: checkId('jobId', jobId),
    owner: checkId('owner', owner),
    ttlMs: checkDuration('ttlMs', ttlMs),
    leaseId: leaseId === undefined ? undefined : checkId('leaseId', leaseId),
  }
}

/** The four that renew, complete and release match on. */
export function checkLeaseKey(value: unknown) {
  const { jobId, generation, leaseId, owner } = members('lease', value)
  return {
    jobId: checkId('jobId', jobId),
    generation: checkGeneration('generation', generation),
    leaseId: checkId('leaseId', leaseId),
    owner: checkId('owner', owner),
  }
}

export function checkRenewal(value: unknown) {
  const { ttlMs } = members('lease', value)
  return { ...checkLeaseKey(value), ttlMs: checkDuration('ttlMs', ttlMs) }
}

export function checkLeaseQuery(value: unknown = {}) {
  const { status, owner, expired, after, limit } = members('query', value)
  if (expired !== undefined && typeof expired !== 'boolean') {
    throw new TypeError('expired must be true or false')
  }
  return {
    status:
      status === undefined
        ? undefined
        : checkChoice('status', status, ['leased', 'released', 'completed']),
    owner: owner === undefined ? undefined : checkId('owner', owner),
    expired,
    after: after === undefined ? undefined : checkId('after', after),
    limit: checkCount('limit', limit === undefined ? 100 : limit, 1, 1000),
  }
}

export function checkLeasePrune(value: unknown) {
  const { olderThanMs, limit } = members('request', value)
  return {
    olderThanMs: checkDuration('olderThanMs', olderThanMs, 0),
    limit: checkCount('limit', limit === undefined ? 1000 : limit, 1, 10_000),
  }
}

/** Below the highest generation: after a raise to that one nobody could claim any more. */
export function checkAtLeast(value: unknown): number {
  const atLeast = checkGeneration('atLeast', value)
  if (atLeast === MAX_GENERATION) throw new RangeError(`atLeast must be below ${MAX_GENERATION}`)
  return atLeast
}

function members(name: string, value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  throw new TypeError(`${name} must be an object`)
}
