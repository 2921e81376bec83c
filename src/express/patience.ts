import type { ServerResponse } from 'node:http'

/** How long a client may take nothing of a long answer, once the handler is past its deadline. */
const PATIENCE_MS = 1000

/** How long a handler waits for a client that does not read its answer. */
export class Patience {
  readonly #res: ServerResponse
  readonly #onEnd: () => void
  #isBehind = false
  #clock: NodeJS.Timeout | undefined

  constructor(res: ServerResponse, onEnd: () => void) {
    this.#res = res
    this.#onEnd = onEnd
  }

  /**
   * From here on it has an end. That the client is behind at one moment says little: a piece that
   * is longer than the buffer puts everybody there.
   */
  limit(): void {
    this.#isBehind = this.#res.writableNeedDrain
    this.#clock = setInterval(() => this.#look(), PATIENCE_MS).unref()
  }

  /** The client has caught up. */
  renew(): void {
    this.#isBehind = false
  }

  end(): void {
    clearInterval(this.#clock)
  }

  #look(): void {
    if (this.#isBehind) this.#onEnd()
    this.#isBehind = this.#res.writableNeedDrain
  }
}
