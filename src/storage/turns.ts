/**
 * Units that join one transaction take turns. They would interleave their savepoints otherwise: the
 * first one to end would release, or undo, what the other is in the middle of.
 */

import { AsyncLocalStorage } from 'node:async_hooks'
// Bound at load time: fake timers in a user's tests must not stop his database.
import { clearTimeout, setTimeout } from 'node:timers'
import { StoreUnavailableError } from '../errors.ts'

/** Where units on one transaction line up: the transaction itself, or one effect within it. */
interface Lane {
  readonly tx: object
  readonly outer: Lane | undefined
  last: Promise<unknown>
  over: boolean
}

export class Turns {
  readonly #lanes = new WeakMap<object, Lane>()
  readonly #inside = new AsyncLocalStorage<Lane>()
  /** As its errors name it. */
  readonly #engine: string
  readonly #maxWaitMs: number

  constructor(engine: string, maxWaitMs: number) {
    this.#engine = engine
    this.#maxWaitMs = maxWaitMs
  }

  /**
   * Runs `unit` once the earlier ones on `tx` have ended. One that is called by an effect on the
   * same transaction waits for that effect's earlier ones only, not for the effect itself. Where
   * the effect has it called by somebody else (a queue, an event), that cannot be seen: the two
   * wait for each other, until the longest wait is over.
   * @throws TypeError where the effect that it is called by has ended
   * @throws StoreUnavailableError where the turn does not come in time; nothing was done then
   */
  async take<T>(tx: object, unit: () => Promise<T>): Promise<T> {
    const lane = this.#laneOf(tx)
    if (lane.over) {
      throw new TypeError('the effect whose transaction this is has ended: await within inside it')
    }
    return new Promise<T>((resolve, reject) => {
      let withdrawn = false
      const withdraw = () => {
        withdrawn = true
        const text = `the transaction was busy with another unit for ${this.#maxWaitMs} ms`
        const advice = 'an effect calls within itself, and has nobody else do so for it'
        reject(new StoreUnavailableError(`${this.#engine}: ${text}: ${advice}`))
      }
      const timer = setTimeout(withdraw, this.#maxWaitMs)
      lane.last = lane.last.then(async () => {
        clearTimeout(timer)
        if (!withdrawn) await unit().then(resolve, reject)
      })
    })
  }

  /**
   * Runs an effect on `tx`, and waits for the units that it started and did not wait for: what they
   * did is part of the effect, or it is undone with it.
   */
  async inside<R>(tx: object, effect: () => R | Promise<R>): Promise<R> {
    const outer = this.#inside.getStore()
    const lane: Lane = { tx, outer, last: Promise.resolve(), over: false }
    try {
      return await this.#inside.run(lane, effect)
    } finally {
      for (let last: Promise<unknown> | undefined; last !== lane.last; await last) last = lane.last
      lane.over = true
    }
  }

  #laneOf(tx: object): Lane {
    for (let lane = this.#inside.getStore(); lane !== undefined; lane = lane.outer) {
      if (lane.tx === tx) return lane
    }
    const known = this.#lanes.get(tx)
    if (known !== undefined) return known
    const lane: Lane = { tx, outer: undefined, last: Promise.resolve(), over: false }
    this.#lanes.set(tx, lane)
    return lane
  }
}
