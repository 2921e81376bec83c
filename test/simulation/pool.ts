/**
 * Work spread over processes: each has the machine's clocks, timers and random ids replaced, which
 * it could not share with another one.
 */

import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'

/** Tells a process that it is there to {@link work}. */
export const PROCESS_FLAG = '--process'

/** Runs the tasks in processes of that module; results come in the order in which they end. */
export async function inProcesses<Task, Result>(
  module: URL,
  tasks: Iterable<Task>,
  onResult: (result: Result, task: Task) => void,
  onProgress: (progress: string) => void = () => {},
): Promise<void> {
  const waiting = tasks[Symbol.iterator]()
  const one = () =>
    new Promise<void>((resolve, reject) => {
      const child = fork(module, [PROCESS_FLAG])
      let current: IteratorResult<Task>
      const next = () => {
        current = waiting.next()
        if (current.done) child.disconnect()
        else child.send({ task: current.value })
      }
      child.on('message', ({ result, progress }: { result: Result; progress?: string }) => {
        if (progress !== undefined) return onProgress(progress)
        if (!current.done) onResult(result, current.value)
        next()
      })
      child.on('error', reject)
      child.on('exit', (code) => {
        if (code === 0) resolve()
        else reject(new Error(`a process ended with ${code}`))
      })
      next()
    })
  await Promise.all(Array.from({ length: availableParallelism() }, one))
}

/** The other end: does what it is told until it is told no more, then ends what it has begun. */
export function work<Task, Result>(
  run: (task: Task, tell: (progress: string) => void) => Promise<Result>,
  end: () => Promise<void>,
): void {
  const tell = (progress: string) => process.send?.({ progress })
  process.on('message', ({ task }: { task: Task }) => {
    run(task, tell).then(
      (result) => process.send?.({ result }),
      (error) => {
        console.error(error)
        process.exit(1)
      },
    )
  })
  const leave = (code: number) => () => void end().finally(() => process.exit(code))
  process.once('disconnect', leave(0))
  process.once('SIGINT', leave(1)).once('SIGTERM', leave(1))
}
