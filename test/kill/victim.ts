/** A child process that is killed, stopped and started again. */

import { type ChildProcess, type ForkOptions, fork } from 'node:child_process'
import { once } from 'node:events'
import { tracked } from './leftovers.ts'
import { Load } from './load.ts'
import type { Pace } from './pace.ts'

export type Kind = 'destination' | 'lease service' | 'worker'

interface Role {
  readonly kind: Kind
  /** Among those of its kind. */
  readonly index: number
  readonly file: string
  /** What it is told as it starts. */
  readonly task: () => object
  readonly env: NodeJS.ProcessEnv
  readonly pace: Pace
  /** It has ended though nobody has killed it. */
  readonly failed: (error: Error) => void
}

const START_TIMEOUT_MS = 60_000

export class Victim {
  readonly kind: Kind
  readonly index: number
  /** The requests to it, or of it where it is a worker. */
  load = new Load()
  readonly #role: Role
  #child: ChildProcess | undefined
  /** Settles once the one before has ended for good. */
  #gone: Promise<unknown> = Promise.resolve()
  #url = ''
  #ready = false
  #stopped = false

  constructor(role: Role) {
    this.kind = role.kind
    this.index = role.index
    this.#role = role
  }

  /** Where it listens; every process has a port of its own. */
  get url(): string {
    return this.#url
  }

  /** Whether it was up, and has not been killed since. */
  get ready(): boolean {
    return this.#ready
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** Whether it is up, and not stopped. */
  get alive(): boolean {
    return this.#ready && !this.#stopped
  }

  /** Resolves once it is up, or was killed before; everything else has `failed`. */
  async start(): Promise<void> {
    // Two processes in one place would each take the other for dead.
    await this.#gone
    if (this.#child !== undefined) return
    const { kind, index, file, task, env, pace, failed } = this.#role
    const began = performance.now()
    const options = {
      execArgv: [],
      env: { ...process.env, ...env },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    } satisfies ForkOptions
    const child = tracked(fork(file, [JSON.stringify(task())], options))
    this.#child = child
    this.load = new Load()
    const fail = (what: string) => {
      if (this.#child === child) failed(new Error(`${kind} ${index} ${what}`))
    }
    child.once('exit', (code, signal) => fail(`has ended: ${signal ?? code}`))
    child.once('error', (error) => fail(String(error)))
    const late = setTimeout(() => fail('is not up in time'), START_TIMEOUT_MS)
    const exit = once(child, 'exit').then(() => undefined)
    const [message] = (await Promise.race([once(child, 'message'), exit])) ?? []
    clearTimeout(late)
    if (message === undefined || this.#child !== child) return
    this.#url = `http://127.0.0.1:${(message as { port: number }).port}`
    this.#ready = true
    pace.started(performance.now() - began)
  }

  /** Kills it, whatever it is doing, and waits until it is gone. */
  async kill(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    this.#ready = false
    this.#stopped = false
    if (child?.exitCode === null && child.signalCode === null) {
      this.#gone = once(child, 'exit')
      child.kill('SIGKILL')
    }
    await this.#gone
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
