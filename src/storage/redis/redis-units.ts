/** Units without locks: each looks at its job, decides, and commits if nothing has changed. */

import type { JobKey } from '../../guard/fence-store.ts'
import { JobTurns } from '../job-turns.ts'
import { retry } from '../retry.ts'
import { unavailable } from './redis-database.ts'

/** The job has changed since it was seen, or the commit came too late: nothing was done. */
export class JobChanged extends Error {}

// Contenders in other processes win about every second time: 50 tries are some five seconds.
const ATTEMPTS = 50

/** Runs units, those of one job one after the other: they would only make each other start over. */
export class RedisUnits {
  readonly #turns: JobTurns

  constructor(maxWaitMs: number, longestTurnMs?: number) {
    this.#turns = new JobTurns('Redis', maxWaitMs, { atOnce: 1, longestTurnMs })
  }

  /**
   * Runs `attempt` until it does not throw {@link JobChanged}.
   * @throws StoreUnavailableError where the turn does not come in time, or others always win;
   * nothing was done then
   */
  async run<T>(job: JobKey, attempt: () => Promise<T>): Promise<T> {
    try {
      return await this.#turns.take(job, () => retry(attempt, isChanged, ATTEMPTS))
    } catch (error) {
      throw isChanged(error) ? unavailable(new Error('others always changed the job first')) : error
    }
  }
}

function isChanged(error: unknown): boolean {
  return error instanceof JobChanged
}
