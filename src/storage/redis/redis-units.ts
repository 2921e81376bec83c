/** Units without locks: each looks at its job, decides, and commits if nothing has changed. */

// Bound at load time: fake timers in a user's tests must not stop his database.
import { clearTimeout, setTimeout } from 'node:timers'
import { StoreUnavailableError } from '../../errors.ts'
import { retry } from '../retry.ts'
import { unavailable } from './redis-database.ts'
import { inTime } from './redis-deadline.ts'

/** The job has changed since it was seen, or the commit came too late: nothing was done. */
export class JobChanged extends Error {}

// Contenders in other processes win about every second time: 50 tries are some five seconds.
const ATTEMPTS = 50
const LONGEST_TURN_MS = 1000

/**
 * Runs units, those of one job one after the other: they would only make each other start over.
 * The turns are a courtesy and no lock: who keeps his too long loses it, and the commit decides.
 */
export class RedisUnits {
  readonly #last = new Map<string, Promise<void>>()
  readonly #maxWaitMs: number
  readonly #longestTurnMs: number

  constructor(maxWaitMs: number, longestTurnMs = LONGEST_TURN_MS) {
    this.#maxWaitMs = maxWaitMs
    this.#longestTurnMs = longestTurnMs
  }

  /**
   * Runs `attempt` until it does not throw {@link JobChanged}.
   * @throws StoreUnavailableError where the turn does not come in time, or others always win;
   * nothing was done then
   */
  async run<T>(job: string, attempt: () => Promise<T>): Promise<T> {
    const before = this.#last.get(job)
    let pass = () => {}
    const turn = new Promise<void>((resolve) => {
      pass = resolve
    })
    const last = before === undefined ? turn : before.then(() => turn)
    this.#last.set(job, last)
    let timer: NodeJS.Timeout | undefined
    try {
      if (before !== undefined) await inTime(before, this.#maxWaitMs, () => this.#withdrawn())
      timer = setTimeout(pass, this.#longestTurnMs)
      return await retry(attempt, isChanged, ATTEMPTS)
    } catch (error) {
      throw isChanged(error) ? unavailable(new Error('others always changed the job first')) : error
    } finally {
      clearTimeout(timer)
      pass()
      if (this.#last.get(job) === last) this.#last.delete(job)
    }
  }

  #withdrawn(): StoreUnavailableError {
    return new StoreUnavailableError(
      `Redis: the job was busy for ${this.#maxWaitMs} ms; the call was withdrawn`,
    )
  }
}

function isChanged(error: unknown): boolean {
  return error instanceof JobChanged
}
