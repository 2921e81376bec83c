/** Seeded chance: sfc32 (Chris Doty-Humphrey, PractRand), 128 bits of state. */
export class Prng {
  #a: number
  #b: number
  #c: number
  #counter = 1

  constructor(seed: number) {
    this.#a = seed | 0
    this.#b = Math.floor(seed / 2 ** 32) | 0
    this.#c = 0x9e3779b9
    for (let i = 0; i < 12; i += 1) this.#next()
  }

  /** From 0 up to, not including, 1. */
  float(): number {
    return this.#next() / 2 ** 32
  }

  /** An integer from 0 up to, not including, `below`. */
  below(below: number): number {
    return Math.floor(this.float() * below)
  }

  /** An integer from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1)
  }

  chance(probability: number): boolean {
    return this.float() < probability
  }

  /** One of them; there has to be one. */
  pick<T>(from: readonly T[]): T {
    const picked = from[this.below(from.length)]
    if (picked === undefined) throw new RangeError('nothing to pick from')
    return picked
  }

  #next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0
    this.#counter = (this.#counter + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (this.#c << 21) | (this.#c >>> 11)
    this.#c = (this.#c + sum) | 0
    return sum >>> 0
  }
}
