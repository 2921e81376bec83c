/** What is done to the processes of a run: kills, stops, cut connections, clocks, full disks. */

import { setTimeout as sleep } from 'node:timers/promises'
import type { Cast } from './cast.ts'
import type { StepClock } from './clock.ts'
import { fillDisk } from './full-disk.ts'
import { Later } from './later.ts'
import type { Pace } from './pace.ts'
import type { Server } from './servers/server.ts'
import type { Victim } from './victim.ts'

export interface HarmPlan {
  readonly kills: number
  /** No more harm is begun after so many milliseconds. */
  readonly limitMs: number
  readonly progress: (line: string) => void
}

export interface Harmed {
  kills: number
  destinations: number
  leaseServices: number
  workers: number
  servers: number
  /** Kills that fell upon a process with no request under way. */
  idle: number
  /** Requests that were under way in what was killed, in all. */
  inFlight: number
  stops: number
  cuts: number
  clockSteps: number
  fullDisks: number
}

export interface Scene {
  readonly cast: Cast
  readonly server: Server
  readonly clock: StepClock
  readonly pace: Pace
  readonly random: () => number
  /** Rejects as soon as anything has failed that nobody has harmed. */
  readonly failure: Promise<never>
}

// A kill comes after so many acknowledged writes, and then so many requests of its victim; or after
// that time, where they do not come.
const MOST_WRITES = 8
const MOST_REQUESTS = 8
const LONGEST_MS = { writes: 2_500, requests: 400 }

export async function harm(plan: HarmPlan, scene: Scene): Promise<Harmed> {
  const done: Harmed = {
    kills: 0,
    destinations: 0,
    leaseServices: 0,
    workers: 0,
    servers: 0,
    idle: 0,
    inFlight: 0,
    stops: 0,
    cuts: 0,
    clockSteps: 0,
    fullDisks: 0,
  }
  const giveUpAt = performance.now() + plan.limitMs
  const later = new Later()
  let told = 0
  while (done.kills < plan.kills && performance.now() < giveUpAt) {
    await Promise.race([harmOne(scene, done, later), scene.failure])
    if (done.kills < told + 50) continue
    told = done.kills
    plan.progress(`${told} kills`)
  }
  later.now()
  return done
}

async function harmOne(scene: Scene, done: Harmed, later: Later): Promise<void> {
  const { cast, server, clock, random } = scene
  const what = random()
  const { harms } = server
  if (what < 0.08) return stop(scene, done, later)
  if (what < 0.16 && clock.steps) {
    clock.set(random() < 0.5 ? '+1h' : '-1h')
    done.clockSteps += 1
    later.after(200 + 1_500 * random(), () => clock.set('+0'))
    return
  }
  if (what < 0.24 && server.engine === 'sqlite') {
    const victim = one(cast.destinations, random)
    const makeRoom = victim && fillDisk(victim, server.where, random)
    if (makeRoom === undefined) return
    done.fullDisks += 1
    later.after(200 + 800 * random(), makeRoom)
    return
  }
  if (what < 0.4 && harms.length > 0) {
    const chosen = harms[Math.floor(harms.length * random())]
    await moment(cast.destinations[0], scene)
    const underWay = cast.destinations.reduce((sum, { load }) => sum + load.underWay, 0)
    if (!(await chosen?.run())) return
    if (chosen?.kind === 'cut') done.cuts += 1
    else count(done, 'servers', underWay)
    return
  }
  if (what < 0.45) {
    // Nobody is left who has the files open: whoever comes next has to recover them.
    await moment(one(cast.destinations, random), scene)
    await kill(cast.destinations, scene, done)
    return
  }
  const kind = random()
  const among = kind < 0.5 ? cast.destinations : kind < 0.75 ? cast.workers : cast.leases
  const victim = one(among, random)
  await moment(victim, scene)
  if (victim !== undefined) await kill([victim], scene, done)
}

/** A moment at which the victim is at work. */
async function moment(victim: Victim | undefined, { cast, pace, random }: Scene): Promise<void> {
  const upTo = (most: number) => 1 + Math.floor(most * random())
  const ms = (longest: number) => longest * random() * pace.slowness
  await cast.acknowledged.after(upTo(MOST_WRITES), ms(LONGEST_MS.writes))
  await victim?.load.after(upTo(MOST_REQUESTS), ms(LONGEST_MS.requests))
  await sleep(5 * random())
}

function one(among: readonly Victim[], random: () => number): Victim | undefined {
  const alive = among.filter((victim) => victim.alive)
  return alive[Math.floor(alive.length * random())]
}

async function kill(victims: readonly Victim[], { random }: Scene, done: Harmed): Promise<void> {
  const up = victims.filter((victim) => victim.ready)
  for (const { kind, load } of up) count(done, COUNTED[kind], load.underWay)
  await Promise.all(up.map((victim) => victim.kill()))
  for (const victim of up) void again(victim, random)
}

const COUNTED = {
  destination: 'destinations',
  'lease service': 'leaseServices',
  worker: 'workers',
} as const

/** Now and then it is killed once more, before it is up. */
async function again(victim: Victim, random: () => number): Promise<void> {
  const up = victim.start()
  if (random() >= 0.1) return up
  await Promise.race([up, sleep(400 * random())])
  await victim.kill()
  return victim.start()
}

function count(
  done: Harmed,
  of: 'destinations' | 'leaseServices' | 'workers' | 'servers',
  underWay: number,
): void {
  done.kills += 1
  done[of] += 1
  done.inFlight += underWay
  if (underWay === 0) done.idle += 1
}

/** Mostly beyond the lease (1.5 s) of a worker, and the deadline (0.6 s) of an effect. */
function stop({ cast, pace, random }: Scene, done: Harmed, later: Later): void {
  const victim = one([...cast.destinations, ...cast.workers], random)
  if (victim === undefined) return
  victim.stop()
  done.stops += 1
  later.after((300 + 2_500 * random()) * pace.slowness, () => victim.goOn())
}
