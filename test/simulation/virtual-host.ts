/**
 * The machine that a simulated world runs on: time, timers, chance and random ids, all of which
 * the product looks up when it uses them. Time stands still unless the world moves it, a timer
 * fires only when the world says so, and ids are named after the step that made them, so that the
 * same steps give the same history to the letter.
 */

import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { performance } from 'node:perf_hooks'
import type { Prng } from './prng.ts'

/** Epoch milliseconds at which every world begins. */
const EPOCH = 1_800_000_000_000

/** A clock that may run too fast or too slow, and be set wrong. */
export interface Clock {
  /** Of elapsed time: 1.01 gains one per cent. */
  rate: number
  /** By how much the wall clock is ahead, in milliseconds. */
  offsetMs: number
}

export interface VirtualTimer {
  readonly owner: string
  /** When it is due, in milliseconds since the world began, by the clock of its owner. */
  readonly due: number
  readonly seq: number
  readonly run: () => void
}

export class VirtualHost {
  /** Real milliseconds since the world began. */
  elapsedMs = 0
  readonly #clocks = new Map<string, Clock>()
  readonly #timers = new Map<object, VirtualTimer>()
  readonly #prng: Prng | undefined
  #owner = 'nobody'
  #label = 'nobody'
  readonly #ids = new Map<string, number>()
  #seq = 0

  /** Chance comes from `prng`; where there is none, it always falls the same way. */
  constructor(prng?: Prng) {
    this.#prng = prng
  }

  clock(name: string): Clock {
    const known = this.#clocks.get(name)
    if (known !== undefined) return known
    const clock = { rate: 1, offsetMs: 0 }
    this.#clocks.set(name, clock)
    return clock
  }

  /** Milliseconds since the world began, by the monotonic clock of that party. */
  monotonic(name: string): number {
    return Math.floor(this.elapsedMs * this.clock(name).rate)
  }

  /** Epoch milliseconds, by the wall clock of that party. */
  wall(name: string): number {
    return EPOCH + this.monotonic(name) + this.clock(name).offsetMs
  }

  /** Whose code runs from here on, and what the ids that it makes are named after. */
  enter(owner: string, label: string): void {
    this.#owner = owner
    this.#label = label
  }

  /** What the ids made now are named after. */
  get label(): string {
    return this.#label
  }

  /** The timers of that party, in the order in which they are due. */
  timers(owner: string): VirtualTimer[] {
    return [...this.#timers.values()]
      .filter((timer) => timer.owner === owner)
      .sort((a, b) => a.due - b.due || a.seq - b.seq)
  }

  fire(timer: VirtualTimer): void {
    for (const [handle, each] of this.#timers) if (each === timer) this.#timers.delete(handle)
    timer.run()
  }

  /** A process has died: none of its timers fires any more. */
  dropTimers(owner: string): void {
    for (const [handle, { owner: whose }] of this.#timers) {
      if (whose === owner) this.#timers.delete(handle)
    }
  }

  setTimeout(run: () => void, ms = 0): object {
    const owner = this.#owner
    const timer = { owner, due: this.monotonic(owner) + Math.max(ms, 1), seq: this.#seq++, run }
    const handle = { ref: () => handle, unref: () => handle }
    this.#timers.set(handle, timer)
    return handle
  }

  clearTimeout(handle: object): void {
    this.#timers.delete(handle)
  }

  /** Both clocks as the code that runs now reads them. */
  read(): { readonly monotonic: number; readonly wall: number } {
    return { monotonic: this.monotonic(this.#owner), wall: this.wall(this.#owner) }
  }

  random(): number {
    return this.#prng?.float() ?? 0.5
  }

  newId(): string {
    const id = (this.#ids.get(this.#label) ?? 0) + 1
    this.#ids.set(this.#label, id)
    return `${this.#label}-${id}`
  }
}

/** Puts the host of the day in place of the real machine; returns how to give that back. */
export function install(host: () => VirtualHost): () => void {
  const { setTimeout, clearTimeout } = globalThis
  const { random } = Math
  const { now } = Date
  const { randomUUID, randomBytes } = crypto
  const bytes = (size: number) =>
    crypto.createHash('shake256', { outputLength: size }).update(host().newId()).digest()
  Object.assign(globalThis, {
    setTimeout: (run: () => void, ms?: number) => host().setTimeout(run, ms),
    clearTimeout: (handle: object) => host().clearTimeout(handle),
  })
  Math.random = () => host().random()
  Date.now = () => host().read().wall
  performance.now = () => host().read().monotonic
  Object.assign(crypto, { randomUUID: () => host().newId(), randomBytes: bytes })
  syncBuiltinESMExports()
  return () => {
    Object.assign(globalThis, { setTimeout, clearTimeout })
    Math.random = random
    Date.now = now
    Reflect.deleteProperty(performance, 'now')
    Object.assign(crypto, { randomUUID, randomBytes })
    syncBuiltinESMExports()
  }
}
