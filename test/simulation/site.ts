/** A destination process: the guard over the real store, and its memory until it dies. */

import { StoreUnavailableError, type Unit, WriteGuard } from 'writefence'
import type { Agenda, Option } from './agenda.ts'
import type { DestinationDatabase, Store } from './databases.ts'
import { type Desk, type Guard, serveWrite, type ThirdSystem } from './destination-host.ts'
import type { Reply, Request } from './messages.ts'

/**
 * Which transactions wait to be let through: none, those that come after a call's first (the
 * settling of an effect), or all.
 */
export type Gate = 'none' | 'later' | 'all'

export interface SiteOptions {
  readonly name: string
  readonly database: DestinationDatabase
  readonly agenda: Agenda
  readonly third: ThirdSystem
  readonly gate: Gate
  readonly effects: Desk['effects']
  /** Puts another store in place of the real one, to see whether anybody notices. */
  readonly broken?: ((store: Store) => Store) | undefined
  /** Runs the destination's code for this call from here on. */
  enter(call: string): void
  /** Whose code runs now. */
  call(): string
  /** Counts what is under way in the real store. */
  track<T>(work: Promise<T>): Promise<T>
}

export class Site {
  readonly #options: SiteOptions
  #process: { alive: boolean; readonly guard: Guard }
  readonly #transactions = new Map<string, number>()
  readonly #ungated = new Set<string>()
  #healed = false

  constructor(options: SiteOptions) {
    this.#options = options
    this.#process = this.#start()
  }

  /** The guard of the process that runs now, past all gates: for looking, and for operators. */
  get guard(): Guard {
    return this.#process.guard
  }

  serve(call: string, request: Request): Promise<Reply> {
    // An operator who finds out, and says so when another attempt has been made since, is wrong:
    // what he says has to be true when it is heard.
    if (request.verb === 'resolve') this.#ungated.add(call)
    const { database, third, effects } = this.#options
    return serveWrite({ guard: this.guard, database, third, effects }, call, request)
  }

  /** Lets every transaction through from here on. */
  heal(): void {
    this.#healed = true
  }

  /** Everything in memory is gone; what runs in the old process gets nowhere. */
  crash(): void {
    this.#process.alive = false
    this.#options.agenda.removeAll((id) => id.startsWith(`${this.#options.name}:`))
    this.#options.database.reopen()
    this.#process = this.#start()
  }

  #start() {
    const { database, broken = (store) => store, track } = this.#options
    const process = { alive: true }
    const store = gated(database.store, (run) => this.#hold(process, run), track)
    return Object.assign(process, { guard: new WriteGuard(broken(store)) })
  }

  #hold<T>(process: { alive: boolean }, run: () => Promise<T>): Promise<T> {
    if (!process.alive) return new Promise(() => {})
    const { name, agenda, gate, enter, track } = this.#options
    const call = this.#options.call()
    const n = (this.#transactions.get(call) ?? 0) + 1
    this.#transactions.set(call, n)
    const free = this.#healed || this.#ungated.has(call) || gate === 'none'
    if (free || (gate === 'later' && n === 1)) return track(run())
    const id = `${name}:${call}/${n}`
    return new Promise((resolve, reject) => {
      const go = (then: () => void) => () => {
        agenda.remove(id)
        enter(call)
        then()
      }
      const failed = () => reject(new StoreUnavailableError('the store of this world is down'))
      const options: Option[] = [
        { key: `run ${id}`, run: go(() => track(run()).then(resolve, reject)) },
        { key: `fail-before ${id}`, fault: 'fail-before', run: go(failed) },
        {
          key: `fail-after ${id}`,
          fault: 'fail-after',
          run: go(() => track(run()).then(failed, failed)),
        },
      ]
      agenda.add(id, () => options)
    })
  }
}

/** The real store, each of whose transactions goes through `hold`. */
function gated(
  real: Store,
  hold: <T>(run: () => Promise<T>) => Promise<T>,
  track: <T>(work: Promise<T>) => Promise<T>,
): Store {
  return {
    mode: real.mode,
    transact: <A, R>(unit: Unit<unknown, 'async', A, R>) => hold(() => real.transact(unit)),
    within: (tx, unit) => real.within(tx, unit),
    view: (job, operationId) => track(real.view(job, operationId)),
    list: (query) => track(real.list(query)),
    prune: (request) => real.prune(request),
    close: () => real.close(),
  }
}
