/** What holds of a lease service, whatever its clock does. */

import { type Answer, type Invoke, isOfLeases } from './history.ts'
import type { Report } from './history-checker.ts'

interface Job {
  readonly grants: Map<number, string>
  /** What was granted before a restore: whatever of it the backup has is still good. */
  readonly before: ReadonlySet<string>
  /** The highest generation that an answer has granted, or an operator has raised to. */
  granted: number
  raised: number
  completed: boolean
  /** Reopenings asked for so far, and how many of them may still be to come. */
  reopens: number
  reopening: number
}

interface OpenCall {
  readonly invoke: Invoke
  readonly job: Job
  /** How things stood when it was sent. */
  readonly granted: number
  readonly raised: number
  readonly completed: boolean
  readonly reopens: number
  readonly reopening: number
}

export class LeaseRules {
  readonly #report: Report
  readonly #jobs = new Map<string, Job>()
  readonly #open = new Map<string, OpenCall>()
  #claims = 0

  constructor(report: Report) {
    this.#report = report
  }

  invoked(invoke: Invoke): void {
    if (!isOfLeases(invoke.verb)) return
    const job = this.#job(invoke.jobId)
    if (invoke.verb === 'reopen_lease') {
      job.completed = false
      job.reopens += 1
      job.reopening += 1
    }
    const { grants: _, before: __, ...known } = job
    this.#open.set(invoke.call, { invoke, job, ...known })
  }

  answered(answer: Answer): void {
    const open = this.#open.get(answer.call)
    this.#open.delete(answer.call)
    if (open === undefined || answer.outcome === 'unknown') return
    const { verb, atLeast = 0 } = open.invoke
    if (verb === 'reopen_lease') open.job.reopening -= 1
    if (verb === 'claim') this.#claimed(open, answer)
    else if (verb === 'raise') open.job.raised = Math.max(open.job.raised, atLeast)
    else if (answer.outcome !== 'lost' && answer.outcome !== 'done') this.#kept(open, answer)
  }

  restored(): void {
    for (const [id, { grants, before }] of this.#jobs) {
      const all = [...grants].map(([generation, holder]) => grantOf(generation, holder))
      this.#jobs.set(id, newJob(new Set([...before, ...all])))
    }
    this.#open.clear()
  }

  counts() {
    return { claims: this.#claims }
  }

  digest(): string {
    const jobs = [...this.#jobs].map(([id, job]) => [
      id,
      { ...job, grants: [...job.grants].sort(), before: [...job.before].sort() },
    ])
    const open = [...this.#open].map(([call, { job: _, ...known }]) => [call, known])
    return JSON.stringify([jobs.sort(), open.sort()])
  }

  #claimed({ invoke, job, ...before }: OpenCall, { outcome, generation, leaseId }: Answer): void {
    if (outcome !== 'claimed' || generation === undefined) return
    this.#claims += 1
    const what = `generation ${generation} of ${invoke.jobId}`
    const holder = leaseId ?? ''
    const known = job.grants.get(generation)
    if (known !== undefined && known !== holder) {
      this.#report('two_holders', `${what} was granted to two leases`)
    }
    const above = Math.max(before.granted, before.raised)
    const had = known === holder || job.before.has(grantOf(generation, holder))
    const again = had && generation === above
    if (generation <= above && !again) {
      this.#report('lease_generation_reused', `${what} was granted after ${above}`)
    }
    if (before.completed && job.reopens === before.reopens) {
      this.#report('completed_job_claimed', `${what} was granted, and the job is completed`)
    }
    job.grants.set(generation, holder)
    job.granted = Math.max(job.granted, generation)
  }

  #kept({ invoke, job, granted, reopens, reopening }: OpenCall, { outcome }: Answer): void {
    const generation = invoke.generation ?? 0
    if (generation < granted) {
      const what = `${invoke.verb} of generation ${generation} of ${invoke.jobId}`
      this.#report('superseded_lease_kept', `${what} took effect after ${granted} was granted`)
    }
    const lasts = reopening === 0 && job.reopens === reopens
    if (outcome === 'completed' && lasts) job.completed = true
  }

  #job(jobId: string): Job {
    const known = this.#jobs.get(jobId)
    if (known !== undefined) return known
    const job = newJob(new Set())
    this.#jobs.set(jobId, job)
    return job
  }
}

function newJob(before: ReadonlySet<string>): Job {
  const none = { granted: 0, raised: 0, completed: false, reopens: 0, reopening: 0 }
  return { grants: new Map(), before, ...none }
}

function grantOf(generation: number, holder: string): string {
  return `${generation} ${holder}`
}
