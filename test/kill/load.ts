/** The requests of one process: a kill waits for them, and counts those that it falls upon. */

import { setTimeout as sleep } from 'node:timers/promises'

export class Load {
  /** How many are under way. */
  underWay = 0
  #began = 0
  readonly #waiting = new Set<{ readonly at: number; readonly go: () => void }>()

  began(): void {
    this.underWay += 1
    this.#began += 1
    for (const waiter of this.#waiting) if (this.#began >= waiter.at) waiter.go()
  }

  ended(): void {
    this.underWay -= 1
  }

  /** Resolves once `count` more have begun, or after that many milliseconds. */
  async after(count: number, ms: number): Promise<void> {
    const late = new AbortController()
    const begun = new Promise<void>((go) => {
      this.#waiting.add({ at: this.#began + count, go })
    })
    await Promise.race([begun, sleep(ms, undefined, { signal: late.signal }).catch(() => {})])
    late.abort()
    this.#waiting.clear()
  }
}
