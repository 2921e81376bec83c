// Bound at load time: fake timers in a user's tests must not stop his database.
import { clearTimeout, setTimeout } from 'node:timers'

/** Settles as `work` does, or rejects with what `late` returns once it is called after `ms`. */
export async function inTime<T>(work: Promise<T>, ms: number, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), ms)
  })
  try {
    return await Promise.race([work, tooLate])
  } finally {
    clearTimeout(timer)
  }
}
