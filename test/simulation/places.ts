/** The destinations of a world, each with the third system behind it. */

import type { Agenda } from './agenda.ts'
import type { DestinationDatabase } from './databases.ts'
import type { Applied, HistoryEvent } from './history.ts'
import type { Plan } from './plan.ts'
import { Site } from './site.ts'
import { SimulatedThirdSystem } from './third-system.ts'
import type { VirtualHost } from './virtual-host.ts'

export interface PlaceOptions {
  readonly name: string
  readonly plan: Plan
  readonly database: DestinationDatabase
  readonly agenda: Agenda
  readonly host: VirtualHost
  record(event: HistoryEvent): void
  track<T>(work: Promise<T>): Promise<T>
  /** The call hangs: whoever waits for it gives up. */
  silent(call: string): void
}

export class Place {
  readonly site: Site
  readonly third: SimulatedThirdSystem
  readonly #options: PlaceOptions
  /** The last effect in the database that the history has. */
  #seen = 0
  #fences = '[]'
  /** Its store has been at work since the history was brought up to date. */
  #touched = false

  constructor(options: PlaceOptions) {
    const { name, plan, database, agenda, host, track, silent } = options
    this.#options = options
    database.now = () => host.wall(name)
    const enter = (call: string) => host.enter(name, call)
    this.third = new SimulatedThirdSystem({
      destination: name,
      agenda,
      deduplicates: plan.deduplicates ?? false,
      enter,
      silent,
      landed: (call, { jobId, scope, generation = 0, leaseId, operationId }) =>
        this.#landed({ jobId, scope, generation, leaseId, operationId, call }),
    })
    this.site = new Site({
      name,
      database,
      agenda,
      third: this.third,
      gate: plan.gate ?? 'none',
      effects: plan.effects ?? {},
      broken: plan.broken,
      enter,
      call: () => host.label,
      track: (work) => {
        this.#touched = true
        return track(work)
      },
    })
  }

  /** Writes down what the database has that the history has not. */
  async observe(): Promise<void> {
    if (!this.#touched) return
    this.#touched = false
    const { name, database, record } = this.#options
    const { effects, fences } = await database.observe(this.#seen)
    for (const { seq, effect } of effects) {
      this.#seen = seq
      record({ event: 'applied', destination: name, ...effect })
    }
    const spelled = JSON.stringify(fences)
    if (spelled === this.#fences) return
    this.#fences = spelled
    for (const fence of fences) record({ event: 'fence', destination: name, ...fence })
  }

  crash(): void {
    this.site.crash()
    this.third.destinationCrashed()
    this.#options.host.dropTimers(this.#options.name)
  }

  async digest(): Promise<string> {
    const { name, database, host } = this.#options
    return `${await database.digest()}\n${this.third.digest()}\n${host.wall(name)}`
  }

  #landed(effect: Omit<Applied, 'event'>): void {
    // What was committed before comes before.
    if (this.#touched) throw new Error('an effect has landed before the world had settled')
    this.#options.record({ event: 'applied', destination: this.#options.name, ...effect })
  }
}
