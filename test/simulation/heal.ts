/**
 * What must still be possible when all is over: whatever has happened, after the handling that the
 * docs ask for, a fresh holder of the newest generation can write. A guard that refuses everything
 * is safe, and of no use.
 */

import type { Reply, Request } from './messages.ts'
import { LEASES, type Step } from './script-worker.ts'
import type { World } from './world.ts'

const DAY_MS = 24 * 60 * 60 * 1000

interface Job {
  readonly jobId: string
  readonly scope: string | undefined
}

/** Goes through it, and through what the network still has; what fails is in `world.broken`. */
export async function heal(world: World): Promise<void> {
  const healer = new Healer(world)
  await healer.clearUp()
  for (const job of jobsOf(world)) await healer.takeOver(job)
  await healer.deliverTheRest()
  world.checker.finish()
}

function jobsOf({ plan }: World): Job[] {
  const scripts: readonly { jobId?: string | undefined; scope?: string | undefined }[] = [
    ...(plan.workers ?? []),
    ...(plan.real ?? []),
  ]
  const jobs = scripts.map(({ jobId = 'job', scope }) => ({ jobId, scope }))
  const first = (job: Job) => jobs.findIndex((each) => sameJob(each, job))
  return jobs.filter((job, index) => first(job) === index)
}

function sameJob(a: Job, b: Job): boolean {
  return a.jobId === b.jobId && a.scope === b.scope
}

class Healer {
  readonly #world: World
  #calls = 0
  #claims = 0

  constructor(world: World) {
    this.#world = world
  }

  /** Everything is up, every deadline over; an operator finds out what became of what is left. */
  async clearUp(): Promise<void> {
    const { agenda, host, places, network, nemesis } = this.#world
    agenda.heal()
    nemesis.heal()
    host.clock(LEASES).offsetMs += DAY_MS
    for (const [to, { site, third }] of places) {
      site.heal()
      host.clock(to).offsetMs += DAY_MS
      third.forget()
      network.destinationCrashed(to)
      await this.#world.settled()
      for (const { jobId, scope, operationId } of await site.guard.unsettled()) {
        await this.#ask({ to, verb: 'resolve', jobId, scope, operationId })
      }
    }
  }

  async takeOver(job: Job): Promise<void> {
    const sealed = await this.#work(job)
    if (!sealed) return
    // Of a reopening: the destinations first.
    for (const to of this.#world.places.keys()) await this.#ask({ to, verb: 'reopen', ...job })
    if (await this.#work(job)) this.#fail(job, 'is sealed after it was reopened')
  }

  async deliverTheRest(): Promise<void> {
    for (;;) {
      const [option] = this.#world.agenda.options()
      if (option === undefined) return
      await this.#world.perform(option)
    }
  }

  /** Whether some destination is sealed; every operation is done otherwise. */
  async #work(job: Job): Promise<boolean> {
    const token = await this.#claim(job)
    if (token === undefined) return false
    for (const to of this.#world.places.keys()) {
      const reply = await this.#ask({ to, verb: 'advance', ...job, ...token })
      if (reply.outcome !== 'done' || reply.older !== 0) {
        this.#fail(job, `cannot be taken over at ${to}: ${JSON.stringify(reply)}`)
        return false
      }
    }
    let sealed = false
    for (const { to, verb, operationId } of this.#operations(job)) {
      const reply = await this.#ask({ to, verb, ...job, ...token, operationId })
      if (reply.code === 'sealed') sealed = true
      else if (reply.outcome !== 'applied' && reply.outcome !== 'replayed') {
        this.#fail(job, `${operationId} cannot be done at ${to}: ${JSON.stringify(reply)}`)
      }
    }
    return sealed
  }

  async #claim(job: Job) {
    const { plan, places } = this.#world
    const fences = [...places.values()].map(({ site }) => site.guard.inspect(job.jobId, job.scope))
    const highest = Math.max(
      0,
      ...(await Promise.all(fences)).map((state) => state?.highestGeneration ?? 0),
    )
    this.#claims += 1
    const leaseId = `healer-${this.#claims}`
    if (!usesLeases(this.#world)) return { generation: highest + 1, leaseId }
    const { jobId } = job
    if (plan.foreign)
      await this.#ask({ to: LEASES, verb: 'raise', jobId, atLeast: Math.max(highest, 1) })
    await this.#ask({ to: LEASES, verb: 'reopen_lease', jobId })
    const request = { to: LEASES, jobId, leaseId, owner: 'healer' } as const
    const reply = await this.#ask({ ...request, verb: 'claim' })
    if (reply.outcome !== 'claimed') {
      this.#fail(job, `cannot be claimed: ${JSON.stringify(reply)}`)
      return undefined
    }
    // Given back at once: the token is what is tried here.
    await this.#ask({ ...request, verb: 'release', generation: reply.generation })
    return { generation: reply.generation, leaseId }
  }

  /** Everything that anybody wanted to be done, and one thing more. */
  #operations(job: Job) {
    const { workers = [], real = [] } = this.#world.plan
    const of = (script: { jobId?: string | undefined; scope?: string | undefined }) =>
      sameJob({ jobId: script.jobId ?? 'job', scope: script.scope }, job)
    const steps = workers
      .filter(of)
      .flatMap((script) => script.steps)
      .filter((step): step is Step & { verb: 'write' | 'effect' } => isWrite(step))
    const written = real
      .filter(of)
      .flatMap(({ destinations, operations }) =>
        operations.flatMap((operationId) =>
          destinations.map((to) => ({ to, verb: 'write' as const, operationId })),
        ),
      )
    const places = [...this.#world.places.keys()]
    const more = places.map((to) => ({ to, verb: 'write' as const, operationId: 'healed' }))
    return [...steps, ...written, ...more]
  }

  async #ask(request: Request): Promise<Reply> {
    this.#calls += 1
    const call = `healer.${this.#calls}`
    let reply: Reply | undefined
    void this.#world.serve(call, request).then((answer) => {
      reply = answer
    })
    await this.#world.settled()
    const landing = this.#world.agenda.options().find(({ key }) => key === `land ${call}`)
    if (landing !== undefined) await this.#world.perform(landing)
    if (reply !== undefined) return reply
    this.#world.fail('liveness', `${request.verb} is not answered: ${JSON.stringify(request)}`)
    return { outcome: 'unknown' }
  }

  #fail({ jobId, scope = '' }: Job, what: string): void {
    this.#world.fail('liveness', `${scope}${jobId} ${what}`)
  }
}

function isWrite({ verb }: Step): boolean {
  return verb === 'write' || verb === 'effect'
}

function usesLeases({ plan }: World): boolean {
  const { workers = [], real = [] } = plan
  return real.length > 0 || workers.some(({ steps }) => steps.some(({ verb }) => verb === 'claim'))
}
