/**
 * A large world made from a seed. Each draws for itself what is in it, what may go wrong and how
 * likely everything is: worlds in which some things never happen find what an even mixture hides
 * (Groce, Zhang, Eide, Chen and Regehr, "Swarm testing", ISSTA 2012).
 */

import type { Fault, Faults } from './agenda.ts'
import type { Plan, TimeStep } from './plan.ts'
import { Prng } from './prng.ts'
import type { RealScript } from './real-worker.ts'
import { LEASES, type Script, type Step } from './script-worker.ts'
import type { Clock } from './virtual-host.ts'

export interface Swarm {
  readonly plan: Plan
  /** How many steps are taken at the most, before the world is healed. */
  readonly steps: number
  /** How likely an option of that kind is, against the others. */
  weight(kind: string): number
  /** Chance for everything that is not drawn here. */
  readonly prng: Prng
}

const HOUR_MS = 60 * 60 * 1000
const ENDINGS: readonly Fault[] = ['land-silent', 'land-broken', 'break', 'refuse']
const FAULTS: readonly Fault[] = [
  ...ENDINGS,
  'lose',
  'mute',
  'again',
  'late',
  'fail-before',
  'fail-after',
  'crash-worker',
  'crash-destination',
  'outage',
  'restore',
]

/** There is always time that could pass: most of the time something else should happen. */
const RARE: Readonly<Record<string, number>> = { time: 0.2, backup: 0.2, down: 0.3, crash: 0.5 }

export function swarmOf(seed: number): Swarm {
  const prng = new Prng(seed)
  const size = prng.pick([1, 1, 1, 1, 2, 2, 3])
  const draw = new Draw(prng, size)
  const plan = draw.plan(`seed ${seed}`)
  const weights = new Map<string, number>()
  return {
    plan,
    steps: 25 * size * prng.between(1, 3),
    weight: (kind) => {
      const weight = weights.get(kind) ?? Math.exp(4 * prng.float() - 2) * (RARE[kind] ?? 1)
      weights.set(kind, weight)
      return weight
    },
    prng,
  }
}

class Draw {
  readonly #prng: Prng
  readonly #size: number
  readonly #destinations: readonly string[]
  readonly #jobs: readonly { jobId: string; scope?: string }[]
  /** Whether this is about effects that are taken over: few jobs, short deadlines, late answers. */
  readonly #overdue: boolean
  /** How much of the work goes elsewhere. */
  readonly #effects: number

  constructor(prng: Prng, size: number) {
    this.#prng = prng
    this.#size = size
    this.#overdue = prng.chance(0.3)
    this.#effects = this.#overdue ? 0.95 : prng.pick([0, 0.3, 0.6, 0.95])
    this.#destinations = ['bank', 'shop'].slice(0, prng.between(1, 2))
    const jobs = [{ jobId: 'j' }, { jobId: 'k' }, { jobId: 'j', scope: 's' }]
    this.#jobs = jobs.slice(0, this.#overdue ? 1 : prng.between(1, size))
  }

  plan(name: string): Plan {
    const prng = this.#prng
    const people = this.#times(prng.between(2, 2 * this.#size + 1), (i) => `w${i}`)
    const realOnes = prng.chance(0.4) ? people.filter(() => prng.chance(0.6)) : []
    const scripted = people.filter((each) => !realOnes.includes(each))
    const workers = scripted.map((each) => this.#script(each))
    if (prng.chance(0.5)) workers.push(this.#operator())
    const usual = this.#overdue ? 'find_out' : 'refuse'
    const onUnknown = prng.pick([usual, 'refuse', 'find_out', 'rerun'] as const)
    const unordered = prng.chance(0.1)
    const afterOverdue = unordered ? 'proceed' : 'refuse'
    return {
      name,
      destinations: this.#destinations,
      workers,
      real: realOnes.map((each) => this.#realScript(each)),
      faults: this.#faults(),
      time: this.#time(people),
      clocks: this.#clocks(people),
      gate: this.#overdue ? 'later' : prng.pick(['none', 'none', 'later', 'all']),
      // What runs on after an answer could not be told apart: two of them in one turn.
      together: realOnes.length === 0 && onUnknown !== 'find_out' && prng.chance(0.5),
      effects: {
        onUnknown,
        afterOverdue,
        deadlineMs: prng.pick(this.#overdue ? [500, 1000] : [1000, 60_000]),
      },
      deduplicates: onUnknown === 'rerun',
      unordered,
      foreign: true,
    }
  }

  #script(name: string): Script {
    const prng = this.#prng
    const job = prng.pick(this.#jobs)
    if (prng.chance(this.#overdue ? 0.7 : 0.1)) {
      const token = { generation: prng.between(1, 4), ...(prng.chance(0.5) && { leaseId: name }) }
      return { ...job, name, token, steps: this.#work() }
    }
    const rounds = this.#times(prng.between(1, this.#size + 1), () => this.#round())
    return { ...job, name, steps: rounds.flat() }
  }

  /** From a claim to the end of the lease, or as far as it comes. */
  #round(): Step[] {
    const prng = this.#prng
    const claim = { verb: 'claim', tries: prng.between(1, 5) } as const
    const advances = this.#destinations.map((to) => ({ verb: 'advance' as const, to, tries: 4 }))
    const end = prng.pick<Step['verb'] & ('complete' | 'release' | 'renew')>([
      'complete',
      'release',
      'release',
      'renew',
    ])
    return [claim, ...(prng.chance(0.7) ? advances : []), ...this.#work(), { verb: end }]
  }

  #work(): Step[] {
    return this.#times(this.#prng.between(1, 4), () => this.#step())
  }

  #step(): Step {
    const prng = this.#prng
    const to = prng.pick(this.#destinations)
    const roll = prng.float()
    const named = prng.chance(0.93)
    const ids = this.#overdue ? 1 : this.#size + 1
    const id = (kind: string) => (named ? `${kind}${prng.below(ids)}` : undefined)
    const tries = prng.between(1, 4)
    if (roll < 0.85 * (1 - this.#effects)) {
      return { verb: 'write', to, operationId: id('w'), throws: prng.chance(0.1), tries }
    }
    if (roll < 0.85) return { verb: 'effect', to, operationId: id('e'), tries }
    if (roll < 0.93) return { verb: 'renew' }
    return { verb: roll < 0.98 ? 'advance' : 'seal', to }
  }

  #operator(): Script {
    const prng = this.#prng
    const step = (): Step => {
      const to = prng.pick(this.#destinations)
      return prng.pick<Step>([
        { verb: 'resolve', to, operationId: `e${prng.below(this.#size + 1)}`, tries: 3 },
        { verb: 'resolve', to, operationId: `e${prng.below(this.#size + 1)}`, tries: 3 },
        { verb: 'reopen', to },
        { verb: 'raise', atLeast: prng.between(1, 5) },
        { verb: 'force_release' },
        { verb: 'reopen_lease' },
      ])
    }
    const steps = this.#times(prng.between(1, 4), step)
    return { ...prng.pick(this.#jobs), name: 'operator', steps }
  }

  #realScript(name: string): RealScript {
    const prng = this.#prng
    const operations = this.#times(prng.between(1, 3), () => `w${prng.below(this.#size + 1)}`)
    // A lease is for a job, whatever its scope at the destinations: these write in none.
    return {
      name,
      jobId: prng.pick(this.#jobs).jobId,
      destinations: this.#destinations,
      operations: [...new Set(operations)],
      ttlMs: prng.pick([500, 1000, 3000]),
      runs: prng.between(1, 3),
      seals: prng.chance(0.2),
    }
  }

  #faults(): Faults {
    const prng = this.#prng
    const landing = (fault: Fault) => this.#overdue && ENDINGS.includes(fault)
    const some = FAULTS.filter((fault) => landing(fault) || prng.chance(0.5))
    const of = Object.fromEntries(some.map((fault) => [fault, prng.between(1, 2 * this.#size)]))
    return { of, atMost: prng.between(0, 4 * this.#size) }
  }

  #time(people: readonly string[]): TimeStep[] {
    const prng = this.#prng
    const passing = [10, 100, 400, 1100, 61_000].map((elapsesMs) => ({
      name: `passes-${elapsesMs}`,
      elapsesMs,
      times: prng.between(0, 5 * this.#size),
    }))
    const clocks = [LEASES, ...this.#destinations, ...people].filter(() => prng.chance(0.3))
    const jumps = clocks.map((whose) => {
      const ms = prng.pick([-HOUR_MS, -900, 900, HOUR_MS])
      return { name: `jumps-${whose}-${ms}`, moves: { [whose]: ms }, times: prng.between(1, 2) }
    })
    return [...passing, ...jumps]
  }

  /** Up to a fifth too fast or too slow, and up to an hour wrong. */
  #clocks(people: readonly string[]): Record<string, Clock> {
    const prng = this.#prng
    const all = [LEASES, ...this.#destinations, ...people].filter(() => prng.chance(0.4))
    const clock = () => ({
      rate: 0.8 + 0.4 * prng.float(),
      offsetMs: prng.between(-HOUR_MS, HOUR_MS),
    })
    return Object.fromEntries(all.map((name) => [name, clock()]))
  }

  #times<T>(count: number, make: (index: number) => T): T[] {
    return Array.from({ length: count }, (_, index) => make(index))
  }
}
