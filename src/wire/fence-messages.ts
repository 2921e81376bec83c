/**
 * The messages of the fence service, both ways. The token travels in its header, as on every
 * write; an answer is the state of the fence as JSON.
 */

import { checkGeneration, checkId } from '../token.ts'
import {
  boolean,
  fields,
  readingRequest,
  readTarget,
  spellJobPath,
  type WireRequest,
  wholeNumber,
} from './message.ts'

export interface FenceCall {
  readonly verb: 'advance' | 'seal' | 'inspect'
  readonly jobId: string
}

/** What a worker has to know of a fence: the service may say more. */
export interface FenceAnswer {
  readonly highestGeneration: number
  readonly sealed: boolean
  /** Operations of older generations that may still take place. */
  readonly older: { readonly inFlight: number; readonly overdue: number }
}

/**
 * The request that makes a call; `target` is relative to the base URL of the service.
 * @throws RangeError for the job ids `.` and `..`, which no URL can carry in its path
 */
export function spellFenceCall({ verb, jobId }: FenceCall): WireRequest {
  return verb === 'inspect'
    ? { method: 'GET', target: spellJobPath('fences', jobId) }
    : { method: 'POST', target: spellJobPath('fences', jobId, verb) }
}

/**
 * Reads a request of the fence service; `undefined` where it is for none of its routes.
 * @throws RequestRefusedError `request_malformed`, before anything was changed
 */
export function readFenceCall({ method, target }: WireRequest): FenceCall | undefined {
  if (!target.startsWith('/fences/')) return undefined
  return readingRequest(() => {
    const [, id, verb, ...rest] = readTarget(target).path
    if (rest.length > 0) return undefined
    if (method === 'GET' && verb === undefined)
      return { verb: 'inspect', jobId: checkId('jobId', id) }
    if (method !== 'POST' || (verb !== 'advance' && verb !== 'seal')) return undefined
    return { verb, jobId: checkId('jobId', id) }
  })
}

/** Reads the answer of advance and seal. @throws TypeError or RangeError where it is none */
export function readFenceAnswer(body: unknown): FenceAnswer {
  const message = fields(body)
  const older = fields(message.older, 'older')
  return {
    highestGeneration: checkGeneration('highestGeneration', message.highestGeneration),
    sealed: boolean(message, 'sealed'),
    older: { inFlight: wholeNumber(older, 'inFlight'), overdue: wholeNumber(older, 'overdue') },
  }
}
