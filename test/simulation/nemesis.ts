/** What happens to a world from outside: time, crashes, outages, backups that are put back. */

import type { Fault, Option } from './agenda.ts'
import type { LeaseDesk } from './lease-desk.ts'
import type { Network } from './network.ts'
import type { Place } from './places.ts'
import type { Plan } from './plan.ts'
import type { RealWorker } from './real-worker.ts'
import { LEASES, type ScriptWorker } from './script-worker.ts'
import type { VirtualHost } from './virtual-host.ts'

export interface NemesisOptions {
  readonly plan: Plan
  readonly host: VirtualHost
  readonly network: Network
  readonly leases: LeaseDesk
  readonly places: ReadonlyMap<string, Place>
  readonly parties: readonly (ScriptWorker | RealWorker)[]
  mayFail(fault: Fault): boolean
  restored(): void
}

export class Nemesis {
  readonly #options: NemesisOptions
  readonly #timeLeft: number[]
  readonly #down = new Set<string>()

  constructor(options: NemesisOptions) {
    this.#options = options
    this.#timeLeft = (options.plan.time ?? []).map((step) => step.times)
  }

  options(): Option[] {
    const { mayFail } = this.#options
    const faults = [...this.#crashes(), ...this.#outages(), ...this.#backups()]
    return [
      ...faults.filter(({ fault }) => fault === undefined || mayFail(fault)),
      ...this.#timeSteps(),
    ]
  }

  isDown(name: string): boolean {
    return this.#down.has(name)
  }

  heal(): void {
    this.#down.clear()
  }

  digest(): string {
    return JSON.stringify([this.#timeLeft, [...this.#down].sort(), this.#options.host.elapsedMs])
  }

  #crashes(): Option[] {
    const { parties, places, network } = this.#options
    const workers = parties
      .filter((party) => !party.ended)
      .map((party) => ({
        key: `crash ${party.name}`,
        fault: 'crash-worker' as const,
        run: () => {
          party.crash()
          network.senderCrashed(party)
        },
      }))
    const destinations = [...places].map(([name, place]) => ({
      key: `crash ${name}`,
      fault: 'crash-destination' as const,
      run: () => {
        place.crash()
        network.destinationCrashed(name)
      },
    }))
    return [...workers, ...destinations]
  }

  #outages(): Option[] {
    return [LEASES, ...this.#options.places.keys()].map((name) =>
      this.#down.has(name)
        ? { key: `up ${name}`, optional: true, run: () => this.#down.delete(name) }
        : { key: `down ${name}`, fault: 'outage', run: () => this.#down.add(name) },
    )
  }

  #backups(): Option[] {
    const { leases, plan, restored } = this.#options
    const restore = () => {
      leases.restore()
      restored()
    }
    if (leases.hasBackup) return [{ key: 'restore', fault: 'restore', run: restore }]
    if (!plan.faults?.of.restore) return []
    return [{ key: 'backup', optional: true, run: () => leases.takeBackup() }]
  }

  #timeSteps(): Option[] {
    const { plan, host, parties } = this.#options
    return (plan.time ?? []).flatMap(({ name, elapsesMs = 0, moves = {} }, index) => {
      const left = this.#timeLeft[index] ?? 0
      if (left === 0) return []
      const run = () => {
        this.#timeLeft[index] = left - 1
        host.elapsedMs += elapsesMs
        for (const [whose, ms] of Object.entries(moves)) host.clock(whose).offsetMs += ms
        for (const party of parties) party.timePassed()
      }
      return [{ key: `time ${name}`, optional: true, run }]
    })
  }
}
