/**
 * Runs a whole unit again where the engine has undone all of it: a deadlock, a serialization
 * failure, a watched key that changed. Bounded, with full jitter (Brooker, "Exponential Backoff
 * and Jitter", 2015): contenders that come back together would only collide again.
 */

// Bound at load time: fake timers in a user's tests must not stop his database.
import { setTimeout } from 'node:timers'

const ATTEMPTS = 6
const FIRST_PAUSE_MS = 5
const LONGEST_PAUSE_MS = 200

/**
 * Resolves with the first run that ends well. `isUndone` says that nothing of a failed run is left,
 * so that another one starts afresh; any other error, and that of the last run, is thrown as it is.
 * @param run is told whether it is the last one, so that it can settle for less than all
 * @param attempts how many runs there are at the most
 */
export async function retry<T>(
  run: (last: boolean) => Promise<T>,
  isUndone: (error: unknown) => boolean,
  attempts = ATTEMPTS,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const last = attempt === attempts
    try {
      return await run(last)
    } catch (error) {
      if (last || !isUndone(error)) throw error
    }
    const longest = Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), LONGEST_PAUSE_MS)
    await new Promise((resolve) => setTimeout(resolve, Math.random() * longest))
  }
}
