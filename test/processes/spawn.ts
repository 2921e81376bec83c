/** Child processes that run a TypeScript file of these tests, as a user's process would. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))

export interface Child {
  readonly process: ChildProcess
  /** The next line that the child prints. Rejects where it ends without one. */
  line(): Promise<string>
  /** Writes a line to the child's input. */
  tell(text: string): void
  /** Resolves with the code that the child ends with, or the signal that ended it. */
  ended: Promise<number | NodeJS.Signals>
}

/** Starts `test/processes/<file>`; the child does not outlive the test. */
export function start(file: string, ...parameters: string[]): Child {
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', `${root}test/processes/${file}`, ...parameters],
    { cwd: root, stdio: ['pipe', 'pipe', 'inherit'] },
  )
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    process: child,
    async line() {
      const { value, done } = await lines.next()
      if (done) throw new Error(`${file} has ended without an answer`)
      return value as string
    },
    tell: (text) => void child.stdin.write(`${text}\n`),
    ended: once(child, 'exit').then(([code, signal]) => code ?? signal),
  }
}
