/**
 * The whole protocol with real processes, and the same without the guard: `npm run demo`.
 *
 * Each `step` is what a worker has to report next in both worlds, and the line that is printed of
 * it. The first report that differs ends the demo with a status other than 0.
 */

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TTL_MS } from './job.ts'
import { Processes } from './processes.ts'
import { paint, printLine } from './timeline.ts'
import { openWorld, readCredits, type World } from './world.ts'

const INTRODUCTION = `
${paint('bold', 'One job, two workers, one pause.')}

The job credits an account with 100, 20 and 3: 123 in all. Six workers had it before and gave it
back, so the next generation is 7. Worker A looks at its lease, and is frozen (SIGSTOP) before its
request is out; worker B takes over. Each column is a destination, its lease service and both
workers, in processes of their own. With writefence the destination checks the fencing token in the
transaction of the write; without it, it just writes.
`
const CONCLUSION = `
A's lease was held when A looked, and over when its write arrived. The lease store refused A's
completion in both worlds; its write went elsewhere, and only the destination could refuse that.
`
// A demo that hangs has failed as well.
const LIMIT_MS = 30_000

type Step = (
  who: 'A' | 'B',
  generation: number | undefined,
  what: string,
  /** What the guarded world answers; `-` where it has no such step. */
  guarded: string,
  /** The same of the unguarded one, where it differs. */
  unguarded?: string,
) => Promise<void>

/** Awaits the next report of a worker in both worlds, and prints it if it is what it has to be. */
function stepper([guardedWorld, unguardedWorld]: readonly [World, World]): Step {
  const began = performance.now()
  return async (who, generation, what, guarded, unguarded = guarded) => {
    const expected = [
      [guardedWorld, guarded],
      [unguardedWorld, unguarded],
    ] as const
    for (const [{ name, [who]: worker }, answer] of expected) {
      if (answer === '-') continue
      const told = await worker.next()
      assert.deepEqual([name, told.answer, told.generation], [name, answer, generation])
    }
    const when = `${((performance.now() - began) / 1000).toFixed(1)} s`
    printLine({ when, who, generation: String(generation ?? '-'), what, guarded, unguarded })
  }
}

async function play(worlds: readonly [World, World]): Promise<void> {
  const step = stepper(worlds)
  for (const { A, url } of worlds) A.say(url)
  await step('A', 7, `claims the job for ${TTL_MS / 1000} s`, 'claimed')
  await step('A', 7, 'advances the fence', 'fence at 7', '-')
  await step('A', 7, 'credits 100', '201 applied, balance 100', '201, balance 100')
  await step('A', 7, 'holds its lease, sends 20, and then …', 'SIGSTOP: stands still')

  for (const { B, url } of worlds) B.say(url)
  await step('B', undefined, 'claims the job', 'held')
  await step('B', 8, "claims it once A's lease is over", 'claimed')
  await step('B', 8, 'advances the fence', 'fence at 8', '-')
  await step('B', 8, 'reads what is there', '200 passed, balance 100', '200, balance 100')
  await step('B', 8, 'credits 20', '201 applied, balance 120', '201, balance 120')
  await step('B', 8, 'credits 3', '201 applied, answer lost', '201, answer lost')
  await step('B', 8, 'sends the 3 again', '201 replayed, balance 123', '201, balance 126')
  await step('B', 8, 'completes the job', 'completed')

  for (const { A } of worlds) process.kill(A.pid, 'SIGCONT')
  await step('A', 7, 'SIGCONT: its 20 arrive', '412 stale, 7 < 8', '201, balance 146')
  await step('A', 7, 'wants to complete the job', 'lost, superseded')
}

/** What is in the files, once all the processes are gone. */
function compare([guardedWorld, unguardedWorld]: readonly [World, World]): void {
  const guarded = readCredits(guardedWorld)
  const unguarded = readCredits(unguardedWorld)
  assert.deepEqual(
    [guarded, unguarded],
    [
      [100, 20, 3],
      [100, 20, 3, 3, 20],
    ],
  )
  const balance = (amounts: number[]) =>
    `${amounts.reduce((sum, each) => sum + each)} = ${amounts.join('+')}`
  console.log()
  printLine({ what: 'final balance', guarded: balance(guarded), unguarded: balance(unguarded) })
}

/** Aborts when a signal asks the demo to end, when nobody reads on, and when it takes too long. */
function ending(): AbortSignal {
  const asked = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => asked.abort(new Error(signal)))
  }
  process.stdout.on('error', (error) => asked.abort(error))
  return AbortSignal.any([asked.signal, AbortSignal.timeout(LIMIT_MS)])
}

const signal = ending()
const processes = new Processes(signal)
const folder = mkdtempSync(join(tmpdir(), 'writefence-demo-'))
try {
  console.log(INTRODUCTION)
  const worlds = await Promise.all([
    openWorld(processes, folder, 'guarded'),
    openWorld(processes, folder, 'unguarded'),
  ])
  const heads = { when: 'time', who: 'who', generation: 'gen', what: '' }
  printLine({ ...heads, guarded: 'with writefence', unguarded: 'without it' })
  await play(worlds)
  await processes.end()
  compare(worlds)
  console.log(CONCLUSION)
} catch (error) {
  console.error(signal.aborted ? `ended: ${signal.reason.message}` : error)
  process.exitCode = 1
} finally {
  await processes.end()
  rmSync(folder, { recursive: true, force: true })
}
