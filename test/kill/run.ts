/**
 * Destinations, workers, lease services and database servers are killed, stopped and started at
 * random moments under load, behind a proxy that loses and repeats requests, by clocks that step.
 * Then the history is judged: every acknowledged write is there once, nothing is there twice,
 * nothing refused is there.
 */

import { mkdirSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Cast, castOf, JOBS, listen } from './cast.ts'
import { stepClock } from './clock.ts'
import type { Child } from './compile.ts'
import type { Engine } from './engines/bank.ts'
import type { Traced } from './evidence.ts'
import type { Fault } from './faults.ts'
import { type Harmed, harm, type Scene } from './harm.ts'
import { type Judgement, judgeFile } from './judge.ts'
import { removeFolder, temporaryFolder } from './leftovers.ts'
import { livesOn, olderHolders } from './liveness.ts'
import { Pace } from './pace.ts'
import { openServer } from './servers/open.ts'
import { thirdSystem } from './third-system.ts'

export interface KillPlan {
  readonly engine: Engine
  readonly kills: number
  readonly seed: number
  /** No more harm is done after so many milliseconds. */
  readonly limitMs: number
  /** The compiled children. */
  readonly file: (child: Child) => string
  /** A folder of the run's own. */
  readonly directory: string
  /** What is planted for the run to find. */
  readonly fault?: Fault | undefined
  readonly progress: (line: string) => void
}

export type KillReport = Harmed &
  Judgement & {
    /** What the proxies did to requests. */
    readonly faults: number
    /** Answers of services whose clock was an hour off. */
    readonly skewed: number
  }

const PATIENCE_MS = 60_000
// A run with a fault in it may be stuck for good: it is found out by other means.
const FAULTY_PATIENCE_MS = 3_000

export async function runKillTest(plan: KillPlan): Promise<KillReport> {
  const { directory, engine, fault, seed, file } = plan
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  const outside = temporaryFolder()
  const random = generator(seed)
  const pace = new Pace()
  const clock = stepClock(`${outside}/clock`)
  if (!clock.steps) plan.progress('libfaketime is not installed: no clock is stepped')
  const clockEnv = clock.env
  const server = await openServer(engine, { directory, outside, clockEnv, random, fault })
  const third = thirdSystem()
  const history = `${directory}/history.jsonl`
  let cast: Cast | undefined
  try {
    const failure = new Failure()
    const { failed } = failure
    const stage = { server, fault, file, history, clockEnv, pace, random, failed }
    cast = await castOf({ ...stage, third: await listen(third.server) })
    const scene = { cast, server, clock, pace, random, failure: failure.promise }
    const harmed = await perform(plan, scene)
    const applied = byJob([...(await server.effects()), ...third.effects])
    const { leasesUrl: leases, bankUrl: bank } = cast
    const sound = fault === undefined || fault === 'none'
    const patienceMs = pace.slowness * (sound ? PATIENCE_MS : FAULTY_PATIENCE_MS)
    const after = { leases, bank, history, jobs: JOBS, applied, patienceMs }
    const { stuck, last } = await livesOn(after)
    // Nothing that they know is in their memory.
    await Promise.all(cast.destinations.map((victim) => victim.kill()))
    await Promise.all(cast.destinations.map((victim) => victim.start()))
    const late = [...stuck, ...(await olderHolders(after, last))]
    await leave(cast)
    const judged = judgeFile(history, [...(await server.effects()), ...third.effects])
    const proxies = Object.values(cast.proxies)
    const faults = proxies.flatMap((proxy) => [...Object.values({ ...proxy.faults })])
    return {
      ...harmed,
      ...judged,
      faults: faults.reduce((sum, each) => sum + each, 0),
      violations: [...judged.violations, ...late],
    }
  } finally {
    if (cast !== undefined) await leave(cast)
    third.server.close().closeAllConnections()
    await server.close()
    removeFolder(outside)
  }
}

/** From the first start to the end of all harm: then everybody but the workers is up. */
async function perform(plan: KillPlan, scene: Scene) {
  const { destinations, leases, workers, proxies } = scene.cast
  const services = [...destinations, ...leases]
  await Promise.race([
    Promise.all([...services, ...workers].map((victim) => victim.start())),
    scene.failure,
  ])
  const done = await harm(plan, scene)
  const harmed = { ...done, skewed: proxies.bank.skewed() + proxies.leases.skewed() }
  proxies.bank.heal()
  proxies.leases.heal()
  // What had been begun may wait for its deadline, whatever the clock said then.
  scene.clock.set('+3h')
  for (const victim of [...services, ...workers]) victim.goOn()
  while (![...services, ...workers].every((victim) => victim.alive)) {
    await Promise.race([sleep(50), scene.failure])
  }
  for (const worker of workers) await worker.kill()
  return harmed
}

async function leave({ destinations, leases, workers, proxies }: Cast): Promise<void> {
  for (const victim of [...destinations, ...leases, ...workers]) await victim.kill()
  for (const { server } of Object.values(proxies)) server.close().closeAllConnections()
}

/** Routes that can be sent to again, for the operations that each job has. */
function byJob(effects: readonly Traced[]): Map<string, string[]> {
  const jobs = new Map<string, string[]>()
  for (const { jobId, operationId = '' } of effects) {
    jobs.set(jobId, [...(jobs.get(jobId) ?? []), operationId])
  }
  return jobs
}

/** The first thing that has gone wrong of itself. */
class Failure {
  failed: (error: Error) => void = () => {}
  readonly promise = new Promise<never>((_, reject) => {
    this.failed = reject
  })

  constructor() {
    this.promise.catch(() => {})
  }
}

/** Seeded, so that a run can be repeated as far as real processes repeat anything (mulberry32). */
function generator(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
