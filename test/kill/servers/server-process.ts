/** A database server that is killed, and started again on what it has left. */

import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { killTree, tracked } from '../leftovers.ts'

const START_TIMEOUT_MS = 60_000

interface Command {
  readonly file: string
  readonly args: readonly string[]
  readonly options: SpawnOptions
  /** What makes it end at once, and leave nothing in the kernel; it is killed unless told. */
  readonly endSignal?: NodeJS.Signals
  /** Rejects while it does not answer. */
  readonly ask: () => Promise<unknown>
}

export class ServerProcess {
  readonly #command: Command
  #child: ChildProcess

  constructor(command: Command) {
    this.#command = command
    this.#child = this.#start()
  }

  get child(): ChildProcess {
    return this.#child
  }

  /** @throws Error where it does not get there */
  async untilUp(): Promise<void> {
    const giveUpAt = performance.now() + START_TIMEOUT_MS
    while (!(await this.#answers())) {
      const { file } = this.#command
      if (performance.now() > giveUpAt) throw new Error(`${file} does not start`)
      // While the old one still lets go of its memory, a new one may end at once.
      if (this.#child.exitCode !== null) this.#child = this.#start()
      await sleep(50)
    }
  }

  /** Kills it and all that it has started; resolves once it has recovered. */
  async crash(): Promise<boolean> {
    const gone = this.#gone()
    killTree(this.#child)
    await gone
    this.#child = this.#start()
    await this.untilUp()
    return true
  }

  async end(): Promise<void> {
    const { endSignal } = this.#command
    const gone = this.#gone()
    if (endSignal === undefined) killTree(this.#child)
    else this.#child.kill(endSignal)
    await gone
  }

  async #gone(): Promise<unknown> {
    const { exitCode, signalCode } = this.#child
    return exitCode ?? signalCode ?? once(this.#child, 'exit')
  }

  #start(): ChildProcess {
    const { file, args, options, endSignal } = this.#command
    return tracked(spawn(file, args, { ...options, stdio: 'ignore' }), endSignal)
  }

  #answers(): Promise<boolean> {
    return this.#command.ask().then(
      () => true,
      () => false,
    )
  }
}

/** Database servers do not run as root: as whom, then. */
export function ownerOf(user: string): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const id = (option: string) => Number(execFileSync('id', [option, user], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

/** One of them by chance. */
export function oneOf<T>(all: readonly T[], random: () => number): T | undefined {
  return all[Math.floor(all.length * random())]
}
