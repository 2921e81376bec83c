/** A disk that is full for a while: no file of the process may grow beyond where it stands. */

import { execFileSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import type { Victim } from './victim.ts'

const PRLIMIT = ['/usr/bin/prlimit', '/bin/prlimit'].find((path) => existsSync(path))

/** Returns what makes room again; `undefined` where there is nothing to limit it with. */
export function fillDisk(
  victim: Victim,
  folder: string,
  random: () => number,
): (() => void) | undefined {
  const { pid } = victim
  const log = `${folder}/bank.db-wal`
  if (PRLIMIT === undefined || pid === undefined || !existsSync(log)) return undefined
  // Below what the log has already, so that the disk is full at once or a little later.
  limit(pid, String(Math.floor(statSync(log).size * random())))
  return () => {
    if (victim.pid === pid) limit(pid, 'unlimited')
  }
}

function limit(pid: number, bytes: string): void {
  // Only the soft limit, which may be raised again. The process may be gone by now.
  try {
    execFileSync(PRLIMIT ?? '', ['--pid', String(pid), `--fsize=${bytes}:`], { stdio: 'ignore' })
  } catch {
    // Then there is nobody whose disk could be full.
  }
}
