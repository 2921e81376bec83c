/**
 * Units that join one transaction take turns. They would interleave their savepoints otherwise: the
 * first one to end would release, or undo, what the other is in the middle of.
 */

import { AsyncLocalStorage } from 'node:async_hooks'
// Bound at load time: fake timers in a user's tests must not stop his database.
import { clearTimeout, setTimeout } from 'node:timers'

/** What waits so long may wait for itself. */
const LONG_MS = 30_000

/** Where units on one transaction line up: the transaction itself, or one effect within it. */
interface Lane {
  readonly tx: object
  readonly outer: Lane | undefined
  last: Promise<unknown>
  over: boolean
}

// Of all stores: two of them may join the same transaction, one inside the effect of the other.
const lanes = new WeakMap<object, Lane>()
const effects = new AsyncLocalStorage<Lane>()

export class Turns {
  readonly #longMs: number

  /** `longMs`: after how many milliseconds of waiting a process warning says so. */
  constructor(longMs = LONG_MS) {
    this.#longMs = longMs
  }

  /**
   * Runs `unit` once the earlier ones on `tx` have ended. One that is called by an effect on the
   * same transaction waits for that effect's earlier ones only, not for the effect itself. Where
   * the effect has it called by somebody else (a queue, an event), that cannot be seen, and the two
   * wait for each other: told by a warning only, since what waits may as well have to.
   * @throws TypeError where the effect that it is called by has ended
   */
  async take<T>(tx: object, unit: () => Promise<T>): Promise<T> {
    const lane = this.#laneOf(tx)
    if (lane.over) {
      throw new TypeError('the effect whose transaction this is has ended: await within inside it')
    }
    const timer = setTimeout(warn, this.#longMs).unref()
    const turn = lane.last.then(() => {
      clearTimeout(timer)
      return unit()
    })
    lane.last = turn.catch(() => {})
    return turn
  }

  /** How many effects on `tx` the caller is inside of, whoever runs them. */
  depth(tx: object): number {
    return [...enclosing()].filter((lane) => lane.tx === tx).length
  }

  /**
   * Runs an effect on `tx`, and waits for the units that it started and did not wait for: what they
   * did is part of the effect, or it is undone with it.
   */
  async inside<R>(tx: object, effect: () => R | Promise<R>): Promise<R> {
    const outer = effects.getStore()
    const lane: Lane = { tx, outer, last: Promise.resolve(), over: false }
    try {
      return await effects.run(lane, effect)
    } finally {
      for (let last: Promise<unknown> | undefined; last !== lane.last; await last) last = lane.last
      lane.over = true
    }
  }

  #laneOf(tx: object): Lane {
    for (const lane of enclosing()) if (lane.tx === tx) return lane
    const known = lanes.get(tx)
    if (known !== undefined) return known
    const lane: Lane = { tx, outer: undefined, last: Promise.resolve(), over: false }
    lanes.set(tx, lane)
    return lane
  }
}

/** The effects that the caller is inside of, the innermost first. */
function* enclosing(): Generator<Lane> {
  for (let lane = effects.getStore(); lane !== undefined; lane = lane.outer) yield lane
}

function warn(): void {
  process.emitWarning(
    'a call of within still waits for another one on its transaction: if that is the one whose' +
      ' effect it is called for, they wait for each other; let the effect call within itself',
    { type: 'WritefenceWarning', code: 'WRITEFENCE_WAITING' },
  )
}
