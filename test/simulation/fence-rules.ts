/** What holds of the fence of every job at every destination. */

import {
  type Answer,
  type Applied,
  admits,
  type FenceSeen,
  type Invoke,
  isOfLeases,
  keyOf,
  nameOf,
  type Place,
} from './history.ts'
import type { Report } from './history-checker.ts'

interface Job {
  readonly name: string
  /** The highest generation that anybody was told, or that an admitted token proves. */
  highest: number
  /** Of the last effect. */
  lastEffect: number
  readonly holders: Map<number, string>
  sealed: boolean
  /** Reopenings asked for so far, and how many of them may still be to come. */
  reopens: number
  reopening: number
}

/** A call that was not answered yet, and how things stood when it was sent. */
interface OpenCall {
  readonly invoke: Invoke
  readonly highest: number
  readonly sealed: boolean
  readonly reopens: number
  readonly reopening: number
}

export class FenceRules {
  readonly #report: Report
  readonly #jobs = new Map<string, Job>()
  readonly #open = new Map<string, OpenCall>()

  constructor(report: Report) {
    this.#report = report
  }

  invoked(invoke: Invoke): void {
    if (isOfLeases(invoke.verb)) return
    const job = this.#job(invoke)
    if (invoke.verb === 'reopen') {
      job.sealed = false
      job.reopens += 1
      job.reopening += 1
    }
    const { highest, sealed, reopens, reopening } = job
    this.#open.set(invoke.call, { invoke, highest, sealed, reopens, reopening })
  }

  answered(answer: Answer): void {
    const open = this.#open.get(answer.call)
    this.#open.delete(answer.call)
    if (open === undefined || answer.outcome === 'unknown') return
    const { invoke } = open
    const job = this.#job(invoke)
    if (invoke.verb === 'reopen') job.reopening -= 1
    const told = answer.highestGeneration
    if (told !== undefined) this.#seen(job, told, open.highest)
    if (invoke.generation !== undefined && admits(answer)) {
      this.#admitted(job, open, answer, invoke.generation)
    }
    const stale = answer.code === 'stale' && told !== undefined
    if (stale && told <= (invoke.generation ?? 0)) {
      this.#report('untrue_refusal', `${job.name}: ${answer.call} is stale, highest is ${told}`)
    }
  }

  applied(effect: Applied): void {
    const job = this.#job(effect)
    const { generation, leaseId } = effect
    if (generation < job.lastEffect) {
      const whose = effect.operationId ?? effect.call
      const order = `${whose} of generation ${generation} after one of ${job.lastEffect}`
      this.#report('generation_fell', `${job.name}: ${order}`)
    }
    job.lastEffect = generation
    if (leaseId !== undefined) this.#holds(job, generation, leaseId)
  }

  fenceSeen(fence: FenceSeen): void {
    const job = this.#job(fence)
    this.#seen(job, fence.generation, job.highest)
  }

  digest(): string {
    const jobs = [...this.#jobs].map(([key, job]) => [key, { ...job, holders: [...job.holders] }])
    return JSON.stringify([jobs.sort(), [...this.#open].sort()])
  }

  /** Whoever lets a token in refuses every older one from then on (told: the answer says so). */
  #admitted(job: Job, open: OpenCall, answer: Answer, generation: number): void {
    const { verb, leaseId } = open.invoke
    const what = `${job.name}: ${verb} of generation ${generation} (${answer.call})`
    if (generation < open.highest) {
      this.#report('stale_accepted', `${what} was let in after ${open.highest} was known`)
    }
    // A reopening that was asked for at any time since may have ended the seal.
    if (open.sealed && answer.outcome === 'applied' && job.reopens === open.reopens) {
      this.#report('sealed_accepted', `${what} took effect after a seal`)
    }
    const lasts = open.reopening === 0 && job.reopens === open.reopens
    if (verb === 'seal' && answer.outcome === 'done' && lasts) job.sealed = true
    this.#holds(job, generation, leaseId ?? '')
    job.highest = Math.max(job.highest, generation)
  }

  #holds(job: Job, generation: number, holder: string): void {
    const known = job.holders.get(generation)
    if (known !== undefined && known !== holder) {
      this.#report('two_holders', `${job.name}: generation ${generation} was let in for two leases`)
    }
    job.holders.set(generation, holder)
  }

  #seen(job: Job, generation: number, before: number): void {
    if (generation < before) {
      this.#report('fence_fell', `${job.name}: at ${generation} after ${before} was known`)
    }
    job.highest = Math.max(job.highest, generation)
  }

  #job(place: Place): Job {
    const key = keyOf(place)
    const known = this.#jobs.get(key)
    if (known !== undefined) return known
    const name = nameOf(place)
    const job = {
      name,
      highest: 0,
      lastEffect: 0,
      holders: new Map(),
      sealed: false,
      reopens: 0,
      reopening: 0,
    }
    this.#jobs.set(key, job)
    return job
  }
}
