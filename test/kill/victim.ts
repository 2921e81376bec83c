/** A child process that is killed, stopped and started again, always on the same port. */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'

const START_TIMEOUT_MS = 30_000

export class Victim {
  readonly kind: string
  readonly #file: string
  readonly #args: (port: number) => readonly string[]
  readonly #env: NodeJS.ProcessEnv
  #child: ChildProcess | undefined
  #port = 0
  #ready = false
  #stopped = false

  constructor(
    kind: string,
    file: string,
    args: (port: number) => readonly string[],
    env: NodeJS.ProcessEnv = {},
  ) {
    this.kind = kind
    this.#file = file
    this.#args = args
    this.#env = env
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Whether it is up: a victim that has not started yet would prove nothing. */
  get alive(): boolean {
    return this.#ready && !this.#stopped
  }

  /** @throws Error where it ends, or says nothing, before it is up */
  async start(): Promise<void> {
    const child = fork(this.#file, [...this.#args(this.#port)], {
      execArgv: [],
      env: { ...process.env, ...this.#env },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    this.#child = child
    const signal = AbortSignal.timeout(START_TIMEOUT_MS)
    const ended = once(child, 'exit', { signal }).then(() => {
      throw new Error(`${this.kind} has ended before it was up`)
    })
    const [message] = await Promise.race([once(child, 'message', { signal }), ended])
    ended.catch(() => {})
    this.#port = (message as { port: number }).port
    this.#ready = true
  }

  /** Kills it, whatever it is doing, and waits until it is gone. */
  async kill(): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    this.#ready = false
    this.#stopped = false
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }

  stop(): void {
    this.#stopped = this.#child?.kill('SIGSTOP') ?? false
  }

  goOn(): void {
    if (!this.#stopped) return
    this.#stopped = false
    this.#child?.kill('SIGCONT')
  }
}
