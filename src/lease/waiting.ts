/** Waiting that ends: every timer set here is cleared, every listener taken off again. */

import { StoreUnavailableError } from '../errors.ts'

/** The longest delay of a timer: Node turns a longer one into 1 ms, that is, a hot loop. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** A timer that fires no earlier than asked, and never at once; long delays are cut short. */
export function later(run: () => void, delayMs: number): NodeJS.Timeout {
  return setTimeout(run, Math.min(Math.max(Math.ceil(delayMs), 1), MAX_TIMER_MS))
}

/**
 * The answer of a call, if it comes in time. What comes later is dropped, errors included.
 * @throws StoreUnavailableError after `ms` milliseconds without one
 */
export async function answerWithin<T>(
  ms: number,
  what: string,
  call: () => Promise<T>,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const silence = new Promise<never>((_, reject) => {
    const tooLate = () => reject(new StoreUnavailableError(`no answer to ${what} within ${ms} ms`))
    timer = later(tooLate, ms)
  })
  try {
    return await Promise.race([call(), silence])
  } finally {
    clearTimeout(timer)
  }
}

/** Resolves after `ms` milliseconds, or as soon as the signal aborts: look at it afterwards. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise<void>((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = later(done, ms)
    signal.addEventListener('abort', done)
  })
}

/** Doubles with each failure, 50 ms to 2 s; the random part keeps a fleet from coming in step. */
export function backoffMs(failures: number): number {
  return Math.min(50 * 2 ** failures, 2_000) * (0.5 + Math.random() / 2)
}
