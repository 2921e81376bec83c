/** Who takes part in a run, and how they find each other. */

import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Child } from './compile.ts'
import { FAULTS, type Fault } from './faults.ts'
import { Load } from './load.ts'
import type { Pace } from './pace.ts'
import { type FaultyProxy, faultyProxy } from './proxy.ts'
import { recorder } from './recorder.ts'
import type { Server } from './servers/server.ts'
import { type DestinationTask, type LeaseTask, shardOf, type WorkerTask } from './tasks.ts'
import { type Kind, Victim } from './victim.ts'

// Two that share a database: one goes on while the other is dead, and both can be.
const DESTINATIONS = 2
const LEASE_SERVICES = 2
const WORKER_PROCESSES = 3
const WORKERS_EACH = 6
// More than workers: a job whose holder was killed is free only after its lease.
export const JOBS = 40

export interface Stage {
  readonly server: Server
  readonly fault: Fault | undefined
  readonly file: (child: Child) => string
  readonly history: string
  /** The base URL of the third system. */
  readonly third: string
  readonly clockEnv: NodeJS.ProcessEnv
  readonly pace: Pace
  readonly random: () => number
  /** A process has ended though nobody has killed it. */
  readonly failed: (error: Error) => void
}

export interface Cast {
  readonly destinations: readonly Victim[]
  readonly leases: readonly Victim[]
  readonly workers: readonly Victim[]
  readonly proxies: { readonly bank: FaultyProxy; readonly leases: FaultyProxy }
  /** Counts the writes that were told to be applied. */
  readonly acknowledged: Load
  /** Where the proxies listen. */
  readonly bankUrl: string
  readonly leasesUrl: string
}

/** Nobody has started yet, but for the proxies. */
export async function castOf(stage: Stage): Promise<Cast> {
  const { server, fault, third, pace, clockEnv, history, failed, file, random } = stage
  const { engine, where } = server
  const make = (kind: Kind, count: number, child: Child, task: (index: number) => object) =>
    Array.from({ length: count }, (_, index) => {
      const env = kind === 'worker' ? {} : clockEnv
      return new Victim({
        kind,
        index,
        file: file(child),
        task: () => task(index),
        env,
        pace,
        failed,
      })
    })
  const place = fault && FAULTS[fault].in
  const plain = place === 'plain destination'
  const destinations = make(
    'destination',
    DESTINATIONS,
    plain ? 'plain-destination' : 'destination',
    (index): DestinationTask => {
      const { slowness } = pace
      return { engine, where, slowness, third, index, count: DESTINATIONS, fault }
    },
  )
  const kept = place !== 'lease service'
  const leases = make('lease service', LEASE_SERVICES, 'lease-service', (): LeaseTask => {
    return { engine, where, slowness: pace.slowness, kept }
  })
  /** One of those that are up. A stopped one is taken for up: it does not answer. */
  const upIn = (victims: readonly Victim[]) => {
    const up = victims.filter((victim) => victim.ready)
    return up[Math.floor(up.length * random())]
  }
  const acknowledged = new Load()
  const workers: Victim[] = []
  const workerLoad = (slot = '') => workers[Number(slot)]?.load
  const sharded = (path: string) => {
    const [, , job = '', kind = ''] = path.split('/')
    if (!['handle', 'elsewhere'].includes(kind)) return upIn(destinations)
    return destinations[shardOf(job, DESTINATIONS)]
  }
  const proxyOf = (name: string, pick: (path: string) => Victim | undefined) =>
    faultyProxy({ recorder: recorder(history, name), pick, workerLoad, acknowledged }, random)
  const proxies = {
    bank: proxyOf('bank-proxy', sharded),
    leases: proxyOf('lease-proxy', () => upIn(leases)),
  }
  const bankUrl = await listen(proxies.bank.server)
  const leasesUrl = await listen(proxies.leases.server)
  const kinds = plain ? ['write'] : ['write', 'handle', 'elsewhere']
  let started = 0
  const task = (index: number): WorkerTask => {
    started += 1
    const known = { history, name: `worker-${started}`, slot: String(index), jobs: JOBS, kinds }
    const urls = { leases: leasesUrl, bank: bankUrl }
    return { ...known, ...urls, slowness: pace.slowness, workers: WORKERS_EACH }
  }
  workers.push(...make('worker', WORKER_PROCESSES, 'worker', task))
  return { destinations, leases, workers, proxies, acknowledged, bankUrl, leasesUrl }
}

export async function listen(server: HttpServer): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
