/**
 * Fence on takeover (rule 10): before a new holder reads anything, each destination has to refuse
 * its predecessor, and whatever the predecessor had begun there has to be over. Without this, a
 * write that was already under way lands after the read, and the read was of the past.
 */

import { StoreUnavailableError, WritefenceError, WriteRefusedError } from '../errors.ts'
import type { FencingToken } from '../token.ts'
import { elapsedMs, instant } from './deadline.ts'
import { answerWithin, backoffMs, pause } from './waiting.ts'

/** What a new holder has to know of a destination. */
export interface DestinationState {
  /** The job was ended there: what is left is to complete it. */
  readonly sealed: boolean
  /** Operations of older generations that may still take place. */
  readonly older: { readonly inFlight: number; readonly overdue: number }
}

/** A place where a job's writes go. A `WriteGuard` is one, and so is an `httpDestination`. */
export interface Destination {
  /**
   * Makes every older token stale there.
   * @throws WriteRefusedError `stale` or `conflict` where the token is not the newest itself
   */
  advance(token: FencingToken): Promise<DestinationState>
}

export interface TakeoverLimits {
  /** How long older operations, or silent destinations, are waited for; milliseconds. */
  readonly takeoverTimeoutMs: number
  /** How long one answer is waited for, in milliseconds. */
  readonly requestTimeoutMs: number
}

/**
 * Resolves once all destinations are fenced and nothing older can take place at any of them, or
 * early once the signal has aborted. Tells whether every destination, of
 * which there is at least one, is sealed.
 * @throws what a destination threw for good, or, after the time-out, what still stood in the way:
 * WriteRefusedError `in_flight` or `outcome_unknown`, or StoreUnavailableError
 */
export async function takeOver(
  destinations: readonly Destination[],
  token: FencingToken,
  limits: TakeoverLimits,
  signal: AbortSignal,
): Promise<{ readonly sealed: boolean }> {
  const failed = new AbortController()
  const over = AbortSignal.any([signal, failed.signal])
  // All at once, so that no destination stays open while another one is waited for.
  const ends = await Promise.allSettled(
    destinations.map(async (destination) => {
      try {
        return await takeOverAt(destination, token, limits, over)
      } catch (error) {
        failed.abort()
        throw error
      }
    }),
  )
  for (const end of ends) if (end.status === 'rejected') throw end.reason
  return { sealed: ends.every((end) => end.status === 'fulfilled' && end.value?.sealed) }
}

/** The first clear state of one destination; `undefined` where the signal aborted before. */
async function takeOverAt(
  destination: Destination,
  token: FencingToken,
  limits: TakeoverLimits,
  signal: AbortSignal,
): Promise<DestinationState | undefined> {
  const began = instant()
  for (let round = 0; !signal.aborted; round += 1) {
    const standing = await advance(destination, token, limits.requestTimeoutMs)
    const obstacle = standing instanceof WritefenceError ? standing : obstacleIn(standing, token)
    if (obstacle === undefined) return standing as DestinationState
    const leftMs = limits.takeoverTimeoutMs - elapsedMs(began)
    if (leftMs <= 0) throw obstacle
    const asked = obstacle instanceof WriteRefusedError ? obstacle.retryAfterMs : undefined
    await pause(Math.min(asked ?? backoffMs(round), leftMs), signal)
  }
  return undefined
}

/** What the destination said, or a failure that may pass. */
async function advance(
  destination: Destination,
  token: FencingToken,
  timeoutMs: number,
): Promise<DestinationState | WritefenceError> {
  try {
    return await answerWithin(timeoutMs, 'advance', async () => destination.advance(token))
  } catch (error) {
    if (error instanceof StoreUnavailableError) return error
    if (error instanceof WriteRefusedError && error.retryable) return error
    throw error
  }
}

/** What keeps the new holder from going on; overdue first, since waiting alone may not end it. */
function obstacleIn(
  { older }: DestinationState,
  token: FencingToken,
): WriteRefusedError | undefined {
  if (older.overdue > 0) return new WriteRefusedError('outcome_unknown', token)
  if (older.inFlight > 0) return new WriteRefusedError('in_flight', token)
  return undefined
}
