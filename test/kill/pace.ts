/**
 * How slow the machine is just now. Leases and time-outs that suit an idle one would only ever run
 * out on one that has other things to do, and nothing would be written between the kills.
 */

// What a process takes to start where it has a core to itself.
const START_MS = 400
const SLOWEST = 10

export class Pace {
  #startMs = START_MS

  started(ms: number): void {
    this.#startMs += (ms - this.#startMs) / 4
  }

  /** 1 where nothing else runs, 2 where everything takes twice as long, and so on. */
  get slowness(): number {
    return Math.min(SLOWEST, Math.max(1, this.#startMs / START_MS))
  }
}
