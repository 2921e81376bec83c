/**
 * A world of real stores and guards in which nothing happens by itself: it says what can happen
 * next, and one of that happens when it is told so.
 */

// Bound at load time: real ones, whatever is installed in place of the globals.
import { clearTimeout, setTimeout } from 'node:timers'
import { StoreUnavailableError } from 'writefence'
import { Agenda, type Option } from './agenda.ts'
import type { HistoryEvent } from './history.ts'
import { HistoryChecker } from './history-checker.ts'
import type { Lab } from './lab.ts'
import { LeaseDesk } from './lease-desk.ts'
import type { Reply, Request } from './messages.ts'
import { Nemesis } from './nemesis.ts'
import { Network } from './network.ts'
import { Place } from './places.ts'
import type { Plan } from './plan.ts'
import { RealWorker } from './real-worker.ts'
import { LEASES, ScriptWorker } from './script-worker.ts'
import type { VirtualHost } from './virtual-host.ts'

const SILENCE_MS = 60_000

/** Something that must not happen has happened. */
export interface Broken {
  readonly rule: string
  readonly message: string
}

export class World {
  readonly plan: Plan
  readonly host: VirtualHost
  readonly history: HistoryEvent[] = []
  readonly checker = new HistoryChecker()
  readonly agenda: Agenda
  readonly network: Network
  readonly nemesis: Nemesis
  readonly places: ReadonlyMap<string, Place>
  readonly #leases: LeaseDesk
  readonly #scripted: readonly ScriptWorker[]
  readonly #real: readonly RealWorker[]
  readonly #errors: Broken[] = []
  /** How many calls the stores are at work on, and who waits for the last of them. */
  #busy = 0
  #idle: (() => void) | undefined

  constructor(plan: Plan, lab: Lab, host: VirtualHost) {
    this.plan = plan
    this.host = host
    for (const [name, clock] of Object.entries(plan.clocks ?? {})) {
      Object.assign(host.clock(name), clock)
    }
    this.agenda = new Agenda(plan.faults ?? { of: {}, atMost: 0 })
    this.network = new Network({
      agenda: this.agenda,
      together: plan.together ?? false,
      serve: (call, request) => this.serve(call, request),
    })
    const fail = (rule: string, message: string) => this.fail(rule, message)
    this.#leases = new LeaseDesk({
      database: lab.leases,
      now: () => host.wall(LEASES),
      broken: plan.brokenLeases,
      fail,
    })
    this.places = new Map(plan.destinations.map((name) => [name, this.#place(name, lab)]))
    this.#scripted = (plan.workers ?? []).map((script) => new ScriptWorker(script))
    this.#real = (plan.real ?? []).map((script) => {
      const send = this.network.send.bind(this.network)
      return new RealWorker({ script, host, send, fail })
    })
    this.nemesis = new Nemesis({
      plan,
      host,
      network: this.network,
      leases: this.#leases,
      places: this.places,
      parties: [...this.#scripted, ...this.#real],
      mayFail: (fault) => this.agenda.mayFail(fault),
      track: (work) => this.#track(work),
      restored: () => this.record({ event: 'restored' }),
    })
    this.#turns()
  }

  /** What can happen now, in an order that depends on the state alone. */
  options(): Option[] {
    const real = this.#real.flatMap((worker) => worker.options())
    return [...this.agenda.options(), ...real, ...this.nemesis.options()]
  }

  /** Whether nobody has anything left to do, and nothing is on its way. */
  get over(): boolean {
    const parties = [...this.#scripted, ...this.#real]
    return parties.every(({ ended }) => ended) && this.agenda.options().length === 0
  }

  /** Lets it happen, and all that follows from it by itself. */
  async perform(option: Option): Promise<void> {
    this.agenda.spend(option.fault)
    option.run()
    await this.settled()
    this.#turns()
  }

  /** Resolves once nothing moves any more, and the history has all that was committed. */
  async settled(): Promise<void> {
    do await this.#quiet()
    while (this.network.handOut())
    for (const place of this.places.values()) await place.observe()
  }

  /** Has a request served at once, by whom it is for. */
  async serve(call: string, request: Request): Promise<Reply> {
    const { to, verb, jobId, scope, generation, leaseId, operationId, atLeast } = request
    const destination = to === LEASES ? undefined : to
    const asked = { verb, destination, jobId, scope, generation, leaseId, operationId, atLeast }
    this.record({ event: 'invoke', call, ...asked })
    this.host.enter(to, call)
    try {
      const reply = await this.#ask(call, request)
      const { raw: _, retryable: __, older: ___, ...answer } = reply
      this.record({ event: 'answer', call, ...answer })
      return reply
    } catch (error) {
      this.fail('unexpected_error', `${call}: ${error instanceof Error ? error.stack : error}`)
      return { outcome: 'unknown' }
    }
  }

  record(event: HistoryEvent): void {
    this.history.push(event)
    this.checker.accept(event)
  }

  fail(rule: string, message: string): void {
    this.#errors.push({ rule, message })
  }

  /** What went wrong, but for what the plan has given up by name. */
  get broken(): readonly Broken[] {
    const { unordered = false } = this.plan
    const found = this.checker.violations.filter(
      ({ rule }) => !(unordered && rule === 'generation_fell'),
    )
    return [...this.#errors, ...found]
  }

  /** Equal for worlds of one plan from which the same can follow. */
  async digest(): Promise<string> {
    const parties = [...this.#scripted, ...this.#real, ...this.places.values(), this.#leases]
    const state = [...parties, this.nemesis, this.agenda, this.network, this.checker]
    return (await Promise.all(state.map((each) => each.digest()))).join('\n')
  }

  async #ask(call: string, request: Request): Promise<Reply> {
    const { to } = request
    if (this.nemesis.isDown(to)) {
      const error = new StoreUnavailableError(`${to} is down`)
      return { outcome: 'unknown', raw: { error } }
    }
    if (to === LEASES) return this.#track(this.#leases.serve(request))
    const place = this.places.get(to)
    if (place === undefined) throw new TypeError(`there is no destination ${to}`)
    return place.site.serve(call, request)
  }

  #place(name: string, lab: Lab): Place {
    return new Place({
      name,
      plan: this.plan,
      database: lab.destination(name),
      agenda: this.agenda,
      host: this.host,
      record: (event) => this.record(event),
      track: (work) => this.#track(work),
      silent: (call) => this.network.silent(call),
    })
  }

  async #track<T>(work: Promise<T>): Promise<T> {
    this.#busy += 1
    try {
      return await work
    } finally {
      this.#busy -= 1
      if (this.#busy === 0) this.#idle?.()
    }
  }

  /** Until no store is at work, and what its answers have set going has come to its end. */
  async #quiet(): Promise<void> {
    do {
      if (this.#busy > 0) await this.#answered()
      // Comes after every promise that can go on has done so.
      await new Promise<void>((resolve) => process.nextTick(resolve))
    } while (this.#busy > 0)
  }

  #answered(): Promise<void> {
    return new Promise((resolve, reject) => {
      const hangs = () => reject(new Error(`a store has not answered for ${SILENCE_MS} ms`))
      const timer = setTimeout(hangs, SILENCE_MS)
      this.#idle = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #turns(): void {
    for (const worker of this.#scripted) {
      const sent = worker.next()
      if (sent !== undefined) this.network.send(worker, sent.seq, sent.request)
    }
  }
}
