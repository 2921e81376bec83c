/** What must not outlive this process, however it ends. */

import type { ChildProcess } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const children = new Map<ChildProcess, NodeJS.Signals>()
const folders = new Set<string>()

process.once('exit', () => {
  for (const [child, signal] of children) {
    if (signal === 'SIGKILL') killTree(child)
    else child.kill(signal)
    removeClock(child)
  }
  for (const folder of folders) removeFolder(folder)
})

/** From now on the child ends with this process at the latest, by that signal. */
export function tracked(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): ChildProcess {
  children.set(child, signal)
  child.once('exit', () => {
    children.delete(child)
    removeClock(child)
  })
  return child
}

/** What libfaketime leaves behind of a process that is killed. */
function removeClock({ pid }: ChildProcess): void {
  for (const name of ['faketime_shm_', 'sem.faketime_sem_']) {
    rmSync(`/dev/shm/${name}${pid}`, { force: true })
  }
}

/** Kills the child and all that it has started. */
export function killTree(child: ChildProcess): void {
  const pids = [child.pid ?? 0, ...startedBy(child)]
  for (const pid of pids) kill(pid)
}

/** The processes that the child has started. */
export function startedBy({ pid }: ChildProcess): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    return text.trim().split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

export function kill(pid: number): void {
  try {
    if (pid > 0) process.kill(pid, 'SIGKILL')
  } catch {
    // It was faster.
  }
}

/** A folder that is gone with this process at the latest, and has no other one's name. */
export function temporaryFolder(parent = tmpdir()): string {
  mkdirSync(parent, { recursive: true })
  const folder = mkdtempSync(join(parent, 'writefence-kill-'))
  folders.add(folder)
  return folder
}

export function removeFolder(folder: string): void {
  folders.delete(folder)
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
}
