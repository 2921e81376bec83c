import { setTimeout as sleep } from 'node:timers/promises'

/** Asks until it is answered, however long the server is away. */
export async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask()
    } catch {
      await sleep(50)
    }
  }
}
