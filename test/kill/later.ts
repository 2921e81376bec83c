/** What is to be undone after a while, and at the end of the harm at the latest. */

export class Later {
  readonly #pending = new Map<NodeJS.Timeout, () => void>()

  after(ms: number, undo: () => void): void {
    const timer = setTimeout(() => {
      this.#pending.delete(timer)
      undo()
    }, ms)
    this.#pending.set(timer, undo)
  }

  now(): void {
    for (const [timer, undo] of this.#pending) {
      clearTimeout(timer)
      undo()
    }
    this.#pending.clear()
  }
}
