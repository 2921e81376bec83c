/** What happens to a world from outside: time, crashes, outages, backups that are put back. */

import type { Fault, Option } from './agenda.ts'
import type { LeaseDesk } from './lease-desk.ts'
import type { Network } from './network.ts'
import type { Place } from './places.ts'
import type { Plan, TimeStep } from './plan.ts'
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
  /** Counts what is under way in the real store. */
  track(work: Promise<void>): Promise<void>
  restored(): void
}

export class Nemesis {
  readonly #options: NemesisOptions
  readonly #timeLeft: number[]
  #timeLeftInAll: number
  readonly #down = new Set<string>()
  // All that could ever happen, made once: most of it is looked at in every step.
  readonly #workers: readonly { readonly party: ScriptWorker | RealWorker; crash: Option }[]
  readonly #destinations: readonly Option[]
  readonly #outages: readonly { readonly name: string; up: Option; down: Option }[]
  readonly #backup: Option
  readonly #restore: Option
  readonly #time: readonly Option[]

  constructor(options: NemesisOptions) {
    this.#options = options
    const { plan, leases, parties, places, track } = options
    this.#timeLeft = (plan.time ?? []).map((step) => step.times)
    const inAll = this.#timeLeft.reduce((sum, times) => sum + times, 0)
    this.#timeLeftInAll = Math.min(plan.timeAtMost ?? inAll, inAll)
    this.#workers = parties.map((party) => ({ party, crash: this.#crashOf(party) }))
    this.#destinations = [...places].map(([name, place]) => this.#crashAt(name, place))
    this.#outages = [LEASES, ...places.keys()].map((name) => this.#outage(name))
    const backUp = () => void track(leases.takeBackup())
    this.#backup = { key: 'backup', optional: true, run: backUp }
    this.#restore = { key: 'restore', fault: 'restore', run: () => this.#putBack() }
    this.#time = (plan.time ?? []).map((step, index) => this.#passing(step, index))
  }

  options(): Option[] {
    const { leases, plan } = this.#options
    const options: Option[] = []
    const add = (option: Option) => {
      const { fault } = option
      if (fault === undefined || this.#options.mayFail(fault)) options.push(option)
    }
    for (const { party, crash } of this.#workers) if (!party.ended) add(crash)
    for (const crash of this.#destinations) add(crash)
    for (const { name, up, down } of this.#outages) add(this.#down.has(name) ? up : down)
    if (leases.hasBackup) add(this.#restore)
    else if (plan.faults?.of.restore) add(this.#backup)
    if (this.#timeLeftInAll === 0) return options
    for (const [index, step] of this.#time.entries()) if (this.#timeLeft[index]) add(step)
    return options
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

  #crashOf(party: ScriptWorker | RealWorker): Option {
    const run = () => {
      party.crash()
      this.#options.network.senderCrashed(party)
    }
    return { key: `crash ${party.name}`, fault: 'crash-worker', run }
  }

  #crashAt(name: string, place: Place): Option {
    const run = () => {
      place.crash()
      this.#options.network.destinationCrashed(name)
    }
    return { key: `crash ${name}`, fault: 'crash-destination', run }
  }

  #outage(name: string) {
    const up: Option = { key: `up ${name}`, optional: true, run: () => this.#down.delete(name) }
    const down: Option = { key: `down ${name}`, fault: 'outage', run: () => this.#down.add(name) }
    return { name, up, down }
  }

  #putBack(): void {
    const { leases, track, restored } = this.#options
    void track(leases.restore())
    restored()
  }

  #passing({ name, elapsesMs = 0, moves = {} }: TimeStep, index: number): Option {
    const { host, parties } = this.#options
    const run = () => {
      this.#timeLeft[index] = (this.#timeLeft[index] ?? 0) - 1
      this.#timeLeftInAll -= 1
      host.elapsedMs += elapsesMs
      for (const [whose, ms] of Object.entries(moves)) host.clock(whose).offsetMs += ms
      for (const party of parties) party.timePassed()
    }
    return { key: `time ${name}`, optional: true, run }
  }
}
