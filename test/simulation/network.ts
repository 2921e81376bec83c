/** Requests on their way, and what becomes of them. */

import type { Agenda, Option } from './agenda.ts'
import { NO_ANSWER, type Reply, type Request } from './messages.ts'

/** Whoever sends requests, and numbers them. */
export interface Sender {
  readonly name: string
  hear(seq: number, reply: Reply): void
}

interface Message {
  readonly call: string
  readonly request: Request
  /** Who waits for the answer; nobody does where it was given up, or this is a copy. */
  waiting: { readonly sender: Sender; readonly seq: number } | undefined
  /** What can become of it while somebody waits, and when nobody does: made when asked for. */
  awaited?: readonly [Option, ...Option[]]
  unheard?: readonly Option[]
}

export interface NetworkOptions {
  readonly agenda: Agenda
  /** Two requests to one destination may arrive in the same turn of its event loop. */
  readonly together: boolean
  /** Has the request served; the answer, if it comes at all. */
  serve(call: string, request: Request): Promise<Reply>
}

export class Network {
  readonly #options: NetworkOptions
  /** Not delivered yet. */
  readonly #under = new Map<string, Message>()
  /** Delivered, and not answered yet. */
  readonly #open = new Map<string, Message>()
  /** Answers that have come and were not heard yet. */
  readonly #answers: (() => void)[] = []

  constructor(options: NetworkOptions) {
    this.#options = options
  }

  send(sender: Sender, seq: number, request: Request): void {
    const call = `${sender.name}.${seq}`
    this.#put({ call, request, waiting: { sender, seq } })
  }

  /**
   * Hands out one answer; `false` where there is none. One at a time, since each is heard by code
   * that reads its own clocks.
   */
  handOut(): boolean {
    const answer = this.#answers.shift()
    answer?.()
    return answer !== undefined
  }

  /** Nobody waits for what this one has sent; it may still arrive. */
  senderCrashed(sender: Sender): void {
    for (const message of [...this.#under.values(), ...this.#open.values()]) {
      if (message.waiting?.sender === sender) message.waiting = undefined
    }
  }

  /**
   * Connections are cut: whoever waits for an answer from there hears that none will come, each in
   * a turn of its own, like any answer.
   */
  destinationCrashed(name: string): void {
    for (const [call, message] of this.#open) {
      if (message.request.to !== name) continue
      this.#open.delete(call)
      this.#answers.push(() => giveUp(message))
    }
  }

  /** The call hangs: its client's own time-out ends the waiting. */
  silent(call: string): void {
    const message = this.#open.get(call)
    if (message !== undefined) giveUp(message)
  }

  digest(): string {
    const waiting = (messages: Map<string, Message>) =>
      [...messages.values()].map(({ call, waiting: who }) => `${call}${who ? '' : '-'}`).sort()
    return JSON.stringify([waiting(this.#under), waiting(this.#open)])
  }

  #put(message: Message): void {
    this.#under.set(message.call, message)
    this.#options.agenda.add(message.call, () => this.#outcomes(message))
  }

  #take(message: Message): void {
    this.#under.delete(message.call)
    this.#options.agenda.remove(message.call)
  }

  #outcomes(message: Message): readonly Option[] {
    if (message.waiting === undefined) {
      message.unheard ??= [{ ...this.#delivery(message), optional: true }]
      return message.unheard
    }
    message.awaited ??= [this.#delivery(message), ...this.#failures(message)]
    const { together } = this.#options
    if (!together || this.#under.size === 1) return message.awaited
    const [delivery, ...failures] = message.awaited
    return [delivery, ...this.#pairs(message, delivery), ...failures]
  }

  #delivery(message: Message): Option {
    const run = () => {
      this.#take(message)
      this.#deliver(message)
    }
    return { key: `deliver ${message.call}`, run }
  }

  #failures(message: Message): Option[] {
    const { call, request } = message
    const { run: deliver } = this.#delivery(message)
    const mute = () => {
      deliver()
      giveUp(message)
    }
    const lose = () => {
      this.#take(message)
      giveUp(message)
    }
    const again = () => {
      deliver()
      this.#put({ call: `${call}'`, request, waiting: undefined })
    }
    return [
      { key: `mute ${call}`, fault: 'mute', run: mute },
      { key: `lose ${call}`, fault: 'lose', run: lose },
      { key: `again ${call}`, fault: 'again', run: again },
      { key: `late ${call}`, fault: 'late', run: () => giveUp(message) },
    ]
  }

  /** This one and another one, in one turn of the destination's event loop. */
  #pairs(message: Message, delivery: Option): Option[] {
    const others = [...this.#under.values()].filter(
      (other) => other !== message && other.request.to === message.request.to,
    )
    return others.map((other) => ({
      key: `together ${message.call} ${other.call}`,
      run: () => {
        delivery.run()
        this.#take(other)
        this.#deliver(other)
      },
    }))
  }

  #deliver(message: Message): void {
    const { call, request } = message
    this.#open.set(call, message)
    void this.#options.serve(call, request).then((reply) => {
      this.#open.delete(call)
      const { waiting } = message
      if (waiting !== undefined) this.#answers.push(() => waiting.sender.hear(waiting.seq, reply))
    })
  }
}

function giveUp(message: Message): void {
  const { waiting } = message
  message.waiting = undefined
  waiting?.sender.hear(waiting.seq, NO_ANSWER)
}
