/** Wall clocks of the services that step by an hour, where libfaketime is installed. */

import { existsSync, renameSync, writeFileSync } from 'node:fs'

const LIBRARY = [
  '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1',
  '/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1',
  '/usr/lib/faketime/libfaketime.so.1',
].find((path) => existsSync(path))

export interface StepClock {
  /** For the services: the monotonic clock, and with it their timers, goes on as it does. */
  readonly env: NodeJS.ProcessEnv
  /** Whether there is anything to step. */
  readonly steps: boolean
  set(offset: '+0' | '+1h' | '-1h' | '+3h'): void
}

export function stepClock(path: string): StepClock {
  if (LIBRARY === undefined) return { env: {}, steps: false, set: () => {} }
  const set: StepClock['set'] = (offset) => {
    writeFileSync(`${path}.new`, `${offset}\n`)
    // Read at any moment: it must never be half written.
    renameSync(`${path}.new`, path)
  }
  set('+0')
  const env = {
    LD_PRELOAD: LIBRARY,
    FAKETIME_TIMESTAMP_FILE: path,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  }
  return { env, steps: true, set }
}
