/**
 * `runWithLease` as a user runs it: its store and its destinations are at the other end of the
 * simulated network, its clocks and timers are the virtual host's.
 */

import {
  type Destination,
  type FenceState,
  type HeldLease,
  type LeaseStore,
  type RunOutcome,
  runWithLease,
  StoreUnavailableError,
  WritefenceError,
} from 'writefence'
import type { Option } from './agenda.ts'
import type { Reply, Request } from './messages.ts'
import type { Sender } from './network.ts'
import type { VirtualHost } from './virtual-host.ts'

export interface RealScript {
  readonly name: string
  readonly jobId?: string | undefined
  /** Where it writes, all of which it takes over first. */
  readonly destinations: readonly string[]
  /** What it writes, in this order, each at every destination. */
  readonly operations: readonly string[]
  readonly ttlMs: number
  /** How often it claims, if others have the job or it loses it. */
  readonly runs: number
  readonly seals?: boolean | undefined
}

export interface RealWorkerOptions {
  readonly script: RealScript
  readonly host: VirtualHost
  send(sender: Sender, seq: number, request: Request): void
  fail(rule: string, message: string): void
}

export class RealWorker implements Sender {
  readonly name: string
  readonly #options: RealWorkerOptions
  readonly #waiting = new Map<number, (reply: Reply) => void>()
  /** What has happened to it, in this order: its state follows from that alone. */
  readonly #past: string[] = []
  #sent = 0
  #runs = 0
  #running = false
  #crashed = false

  constructor(options: RealWorkerOptions) {
    this.#options = options
    this.name = options.script.name
  }

  get ended(): boolean {
    return this.#crashed || (!this.#running && this.#runs >= this.#options.script.runs)
  }

  /** What it can do by itself: begin, and hear its timers. */
  options(): Option[] {
    const { host } = this.#options
    if (this.ended) return []
    if (!this.#running) return [{ key: `start ${this.name}`, run: () => this.#start() }]
    const [timer] = host.timers(this.name)
    if (timer === undefined || timer.due > host.monotonic(this.name)) return []
    const fire = () => {
      this.#enter('timer')
      host.fire(timer)
    }
    return [{ key: `timer ${this.name}`, run: fire }]
  }

  hear(seq: number, reply: Reply): void {
    const waiting = this.#waiting.get(seq)
    this.#waiting.delete(seq)
    if (this.#crashed || waiting === undefined) return
    this.#enter(`${seq} ${reply.outcome}${reply.code ?? ''}`)
    waiting(reply)
  }

  /** Its timers tell it. */
  timePassed(): void {}

  crash(): void {
    this.#crashed = true
    this.#options.host.dropTimers(this.name)
  }

  digest(): string {
    return JSON.stringify([this.name, this.#past, this.#crashed])
  }

  #enter(why: string): void {
    const { host } = this.#options
    host.enter(this.name, this.name)
    const { monotonic, wall } = host.read()
    this.#past.push(`${why} ${monotonic} ${wall}`)
  }

  #start(): void {
    const { script, host, fail } = this.#options
    this.#enter('start')
    this.#running = true
    this.#runs += 1
    const { jobId = 'job', ttlMs, destinations: names } = script
    const destinations = names.map((to) => this.#destination(to))
    const run = { jobId, owner: this.name, ttlMs, destinations }
    const ended = (error?: unknown) => {
      this.#running = false
      // What a run leaves behind would act for a lease that is over.
      const left = host.timers(this.name).length
      if (left > 0 && !this.#crashed) fail('timers_left', `${this.name} has ${left} timers left`)
      if (error !== undefined && !(error instanceof WritefenceError)) {
        fail('unexpected_error', `${this.name}: ${error instanceof Error ? error.stack : error}`)
      }
    }
    const outcome = runWithLease(this.#leases(), run, (lease) => this.#work(lease))
    outcome
      .then(
        (done) => this.#done(done),
        () => {},
      )
      .then(() => outcome)
      .then(() => ended(), ended)
  }

  /** After a success nothing is left to do. */
  #done({ status }: RunOutcome<string>): void {
    if (status === 'completed' || status === 'already_completed') {
      this.#runs = this.#options.script.runs
    }
  }

  /** The user's handler. Each effect is preceded by a look at the lease, as the docs have it. */
  async #work(lease: HeldLease): Promise<string> {
    const { destinations, operations, seals } = this.#options.script
    const { jobId, generation, leaseId } = lease
    for (const operationId of operations) {
      for (const to of destinations) {
        lease.assertHeld()
        await this.#retrying(lease, { to, verb: 'write', jobId, generation, leaseId, operationId })
      }
    }
    if (seals) {
      for (const to of destinations) {
        await this.#retrying(lease, { to, verb: 'seal', jobId, generation, leaseId })
      }
    }
    return 'done'
  }

  /** Once more where that is harmless. */
  async #retrying(lease: HeldLease, request: Request): Promise<unknown> {
    try {
      return await this.#ask(request)
    } catch (error) {
      if (!(error instanceof WritefenceError) || !error.retryable) throw error
      lease.assertHeld()
      return this.#ask(request)
    }
  }

  #destination(to: string): Destination {
    return {
      advance: async (token) => {
        const state = await this.#ask({ to, verb: 'advance', ...token })
        return state as FenceState
      },
    }
  }

  #leases(): LeaseStore {
    const ask = <T>(verb: Request['verb'], request: object) =>
      this.#ask({ to: 'leases', verb, jobId: 'job', ...request }) as Promise<T>
    const never = () => Promise.reject(new StoreUnavailableError('not for workers'))
    return {
      claim: (request) => ask('claim', request),
      renew: (lease) => ask('renew', lease),
      complete: (lease) => ask('complete', lease),
      release: (lease) => ask('release', lease),
      get: never,
      list: never,
      raise: never,
      forceRelease: never,
      reopen: never,
      prune: never,
      close: () => Promise.resolve(),
    }
  }

  #ask(request: Request): Promise<unknown> {
    this.#sent += 1
    const seq = this.#sent
    return new Promise((resolve, reject) => {
      this.#waiting.set(seq, ({ raw }) => {
        if (raw === undefined) reject(new StoreUnavailableError('the connection was cut'))
        else if ('error' in raw) reject(raw.error)
        else resolve(raw.value)
      })
      this.#options.send(this, seq, request)
    })
  }
}
