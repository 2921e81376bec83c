/** The processes of the demo: started, listened to, and gone at the end whatever happens. */

import { type ChildProcess, fork } from 'node:child_process'
import { on } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { Report } from './job.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A process that tells its steps. */
export interface Actor {
  readonly pid: number
  /** The next step. @throws Error where the process ends instead, or the demo is to end */
  next(): Promise<Report>
  /** Lets a worker go on that waits for this word. */
  say(word: string): void
}

export class Processes {
  readonly #signal: AbortSignal
  readonly #children: ChildProcess[] = []

  /** `signal` ends every waiting for a step. */
  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  /** Starts a file of this folder in a Node of its own. */
  start(file: string, ...args: readonly string[]): Actor {
    const child = fork(fileURLToPath(new URL(file, import.meta.url)), args, {
      cwd: root,
      execPath: process.execPath,
      execArgv: ['--import', 'tsx'],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    this.#children.push(child)
    const said = child.stderr === null ? '' : text(child.stderr)
    const reports = on(child, 'message', { signal: this.#signal, close: ['disconnect'] })
    return {
      pid: child.pid ?? 0,
      async next() {
        const { value, done } = await reports.next()
        if (done) throw new Error(`${file} has ended too early\n${await said}`)
        return value[0]
      },
      say: (word) => void child.send(word),
    }
  }

  /** Ends them all, stopped ones too; resolves once they are gone. */
  async end(): Promise<void> {
    const gone = this.#children
      .filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
      .map((child) => new Promise((resolve) => child.once('exit', resolve)))
    // Those that have ended are not signalled: their number may be another process's by now.
    for (const child of this.#children) child.kill('SIGKILL')
    await Promise.all(gone)
  }
}
