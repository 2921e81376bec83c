/**
 * Calls on one job take turns in this process before they ask the database. There they would wait
 * for the job's lock, each on a connection of its own, until none is left for other jobs; without
 * locks they would make each other start over.
 *
 * The turns are a courtesy and no lock: who keeps his too long loses it, and the database decides.
 */

// Bound at load time: fake timers in a user's tests must not stop his database.
import { performance } from 'node:perf_hooks'
import { clearTimeout, setTimeout } from 'node:timers'
import { StoreUnavailableError } from '../errors.ts'
import type { JobKey } from '../guard/fence-store.ts'

/** One that has the lock, and one that is at the database already when it is free. */
const AT_ONCE = 2
const LONGEST_TURN_MS = 1000

export interface JobTurnsOptions {
  /** How many calls on one job run at a time. */
  readonly atOnce?: number | undefined
  readonly longestTurnMs?: number | undefined
}

interface Line {
  running: number
  readonly waiting: (() => void)[]
}

export class JobTurns {
  readonly #lines = new Map<string, Line>()
  /** As its errors name it. */
  readonly #engine: string
  readonly #maxWaitMs: number
  readonly #atOnce: number
  readonly #longestTurnMs: number

  constructor(
    engine: string,
    maxWaitMs: number,
    { atOnce = AT_ONCE, longestTurnMs = LONGEST_TURN_MS }: JobTurnsOptions = {},
  ) {
    this.#engine = engine
    this.#maxWaitMs = maxWaitMs
    this.#atOnce = atOnce
    this.#longestTurnMs = longestTurnMs
  }

  /**
   * Runs `call` once few enough of the earlier ones on the job are left that have neither ended
   * nor lost their turn, and tells it how many milliseconds of the longest wait are left.
   * @throws StoreUnavailableError where the turn does not come in time; nothing was done then
   */
  async take<T>({ scope, jobId }: JobKey, call: (leftMs: number) => Promise<T>): Promise<T> {
    const began = performance.now()
    // No id has a line break in it.
    const job = `${scope}\n${jobId}`
    const line = this.#lines.get(job) ?? { running: 0, waiting: [] }
    this.#lines.set(job, line)
    if (line.running < this.#atOnce) line.running += 1
    else await this.#turnIn(line)
    let passed = false
    const pass = () => {
      if (passed) return
      passed = true
      const next = line.waiting.shift()
      // Whoever is next has this turn: the number of those that run stays as it is.
      if (next !== undefined) return next()
      line.running -= 1
      if (line.running === 0) this.#lines.delete(job)
    }
    const timer = setTimeout(pass, this.#longestTurnMs)
    try {
      return await call(Math.max(1, this.#maxWaitMs - (performance.now() - began)))
    } finally {
      clearTimeout(timer)
      pass()
    }
  }

  #turnIn(line: Line): Promise<void> {
    return new Promise((resolve, reject) => {
      const next = () => {
        clearTimeout(timer)
        resolve()
      }
      const tooLate = () => {
        line.waiting.splice(line.waiting.indexOf(next), 1)
        const text = `the job was busy for ${this.#maxWaitMs} ms; the call was withdrawn`
        reject(new StoreUnavailableError(`${this.#engine}: ${text}`))
      }
      const timer = setTimeout(tooLate, this.#maxWaitMs)
      line.waiting.push(next)
    })
  }
}
