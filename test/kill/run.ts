/**
 * Destination, workers and lease service are killed, stopped and started at random moments under
 * load, behind a proxy that loses and repeats requests, by clocks that step. Then the history is
 * judged: every acknowledged write is there once, nothing is there twice, nothing refused is there.
 */

import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { type Applied, parseHistory } from '../simulation/history.ts'
import { HistoryChecker, type Violation } from '../simulation/history-checker.ts'
import { stepClock } from './clock.ts'
import { compileChildren } from './compile.ts'
import { livesOn } from './liveness.ts'
import { faultyProxy } from './proxy.ts'
import { recorder } from './recorder.ts'
import { thirdSystem } from './third-system.ts'
import { Victim } from './victim.ts'

export interface KillPlan {
  readonly kills: number
  readonly seed: number
  /** A folder of the run's own, below the repository so that its packages are found. */
  readonly directory: string
  readonly progress?: ((line: string) => void) | undefined
}

export interface KillReport {
  readonly kills: number
  readonly stops: number
  readonly clockSteps: number
  readonly faults: number
  readonly calls: number
  readonly acknowledged: number
  readonly effects: number
  readonly violations: readonly (Violation | { readonly rule: string; readonly message: string })[]
}

const WORKERS = 4
// Many more than workers: a job whose holder was killed is free only after its lease.
const JOBS = 16

export async function runKillTest(plan: KillPlan): Promise<KillReport> {
  const { directory } = plan
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  const children = compileChildren(`${directory}/children`)
  const history = `${directory}/history.jsonl`
  const random = generator(plan.seed)
  const clock = stepClock(`${directory}/clock`)
  const third = thirdSystem()
  const thirdUrl = await listen(third.server)
  const file = (name: string) => `${children}/${name}.js`
  const bank = new Victim(
    'destination',
    file('destination'),
    (port) => [`${directory}/bank.db`, String(port), thirdUrl],
    clock.env,
  )
  const leases = new Victim(
    'lease service',
    file('lease-service'),
    (port) => [`${directory}/leases.db`, String(port)],
    clock.env,
  )
  const servers: Server[] = [third.server]
  const victims = [bank, leases]
  try {
    await Promise.all([bank.start(), leases.start()])
    const proxies = [bank, leases].map((victim, index) =>
      faultyProxy(victim.url, random, recorder(history, `proxy-${index}`)),
    )
    servers.push(...proxies.map((proxy) => proxy.server))
    const [bankUrl = '', leasesUrl = ''] = await Promise.all(
      proxies.map((proxy) => listen(proxy.server)),
    )
    let started = 0
    const workers = Array.from({ length: WORKERS }, () => {
      const args = () => [history, `worker-${++started}`, leasesUrl, bankUrl, String(JOBS)]
      return new Victim('worker', file('worker'), args)
    })
    victims.push(...workers)
    await Promise.all(workers.map((worker) => worker.start()))
    const done = await harm(plan, victims, random, clock)
    for (const proxy of proxies) proxy.heal()
    // What had been begun may wait for its deadline, whatever the clock said then.
    clock.set('+3h')
    for (const victim of victims) victim.goOn()
    for (const worker of workers) await worker.kill()
    const stuck = await livesOn(leasesUrl, bankUrl, history, JOBS)
    await Promise.all([bank.kill(), leases.kill()])
    const faults = proxies.flatMap((proxy) => Object.values(proxy.faults))
    const report = judge(history, [...effectsOf(`${directory}/bank.db`), ...third.effects])
    return {
      ...done,
      ...report,
      faults: faults.reduce((sum, each) => sum + each, 0),
      violations: [...report.violations, ...stuck],
    }
  } finally {
    for (const victim of victims) await victim.kill()
    for (const server of servers) server.close().closeAllConnections()
  }
}

async function harm(
  { kills, progress }: KillPlan,
  victims: readonly Victim[],
  random: () => number,
  clock: ReturnType<typeof stepClock>,
) {
  const done = { kills: 0, stops: 0, clockSteps: 0 }
  let failure: unknown
  while (done.kills < kills) {
    await sleep(20 + 400 * random())
    if (failure !== undefined) throw failure
    const up = victims.filter((victim) => victim.alive)
    const victim = up[Math.floor(random() * up.length)]
    if (victim === undefined) continue
    const what = random()
    if (what < 0.1) {
      // Beyond the lease (900 ms) of a worker, beyond the deadline (800 ms) of an effect.
      victim.stop()
      done.stops += 1
      setTimeout(() => victim.goOn(), 1_000 + 1_500 * random())
      continue
    }
    if (what < 0.2 && clock.steps) {
      clock.set(random() < 0.5 ? '+1h' : '-1h')
      done.clockSteps += 1
      setTimeout(() => clock.set('+0'), 500 * random())
      continue
    }
    await victim.kill()
    done.kills += 1
    if (done.kills % 50 === 0) progress?.(`${done.kills} kills`)
    victim.start().catch((error: unknown) => {
      failure ??= error
    })
  }
  while (!victims.every((victim) => victim.alive)) {
    if (failure !== undefined) throw failure
    await sleep(50)
  }
  return done
}

function effectsOf(path: string): Applied[] {
  const db = new Database(path)
  const rows = db
    .prepare('SELECT job, operation, generation, lease FROM effects ORDER BY seq')
    .all()
  db.close()
  return (rows as Record<string, never>[]).map((row) => ({
    event: 'applied',
    destination: 'bank',
    jobId: String(row.job),
    generation: Number(row.generation),
    leaseId: String(row.lease),
    operationId: String(row.operation),
  }))
}

function judge(path: string, effects: readonly Applied[]) {
  const events = [...parseHistory(readFileSync(path, 'utf8')), ...effects]
  const checker = new HistoryChecker()
  for (const event of events) checker.accept(event)
  checker.finish()
  const answers = events.filter((event) => event.event === 'answer')
  const good = answers.filter(({ outcome }) => outcome === 'applied' || outcome === 'replayed')
  return {
    calls: events.filter((event) => event.event === 'invoke').length,
    acknowledged: good.length,
    effects: effects.length,
    violations: checker.violations,
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

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
