/**
 * Every schedule of a small world, by depth-first search. A world cannot be copied (there are
 * promises in it), so each branch begins anew and goes through its prefix again.
 *
 * Two prefixes that lead to worlds with equal digests are followed once: the digest has all that
 * the future depends on (all rows, clocks, messages, workers, budgets) and all that it is judged
 * by (the checker's own state).
 */

import { createHash } from 'node:crypto'
import type { Option } from './agenda.ts'
import { describeHistory } from './describe-history.ts'
import { heal } from './heal.ts'
import type { Lab } from './lab.ts'
import type { Plan } from './plan.ts'
import { install, VirtualHost } from './virtual-host.ts'
import { type Broken, World } from './world.ts'

export interface Explored {
  readonly plan: string
  /** Complete interleavings that were covered. */
  schedules: number
  /** Different states that were reached. */
  states: number
  /** Steps that were taken to get there, repetitions included. */
  steps: number
  /** Worlds that had come to rest, and were asked whether a fresh holder can write. */
  rests: number
  readonly violations: Found[]
}

interface Found {
  readonly plan: string
  /** The steps that lead to it. */
  readonly path: readonly string[]
  readonly broken: readonly Broken[]
  /** What happened, for people. */
  readonly history: readonly string[]
}

export interface ExploreOptions {
  /** Ends after so many violations; 1 unless told. */
  readonly atMost?: number | undefined
  /** Follows equal states only once; true unless told. */
  readonly prune?: boolean | undefined
  /** Hears how far it is, now and then. */
  readonly onProgress?: ((explored: Explored) => void) | undefined
}

const PROGRESS_STEPS = 2_000

export async function explore(
  plan: Plan,
  lab: Lab,
  options: ExploreOptions = {},
): Promise<Explored> {
  const search = new Search(plan, lab, options)
  return search.run()
}

class Search {
  readonly #plan: Plan
  readonly #lab: Lab
  readonly #atMost: number
  readonly #prune: boolean
  readonly #onProgress: (explored: Explored) => void
  /** How many schedules lead on from a state. */
  readonly #known = new Map<string, number>()
  readonly #explored: Explored
  #host = new VirtualHost()

  constructor(plan: Plan, lab: Lab, options: ExploreOptions) {
    const { atMost = 1, prune = true, onProgress = () => {} } = options
    this.#plan = plan
    this.#lab = lab
    this.#atMost = atMost
    this.#prune = prune
    this.#onProgress = onProgress
    this.#explored = {
      plan: plan.name,
      schedules: 0,
      states: 0,
      steps: 0,
      rests: 0,
      violations: [],
    }
  }

  async run(): Promise<Explored> {
    const restore = install(() => this.#host)
    try {
      this.#explored.schedules = await this.#from(await this.#replay([]), [])
    } finally {
      restore()
    }
    return this.#explored
  }

  /** The number of schedules from here; `world` is used up. */
  async #from(world: World, path: readonly string[]): Promise<number> {
    if (this.#reported(world, path)) return 1
    const digest = createHash('sha256')
      .update(await world.digest())
      .digest('base64')
    const known = this.#known.get(digest)
    if (known !== undefined && this.#prune) return known
    if (known === undefined) this.#explored.states += 1
    const options = world.options()
    const keys = options.map(({ key }) => key)
    let current: World | undefined = world
    let schedules = 0
    if (options.every(isOptional)) {
      this.#explored.rests += 1
      schedules += 1
      await heal(world)
      current = undefined
      if (this.#reported(world, path)) return 1
    }
    for (const key of keys) {
      if (this.#explored.violations.length >= this.#atMost) break
      current ??= await this.#replay(path)
      await this.#step(current, key)
      schedules += await this.#from(current, [...path, key])
      current = undefined
    }
    this.#known.set(digest, schedules)
    return schedules
  }

  async #replay(path: readonly string[]): Promise<World> {
    this.#host = new VirtualHost()
    await this.#lab.clear()
    const world = new World(this.#plan, this.#lab, this.#host)
    await world.settled()
    for (const key of path) await this.#step(world, key)
    return world
  }

  async #step(world: World, key: string): Promise<void> {
    this.#explored.steps += 1
    if (this.#explored.steps % PROGRESS_STEPS === 0) this.#onProgress(this.#explored)
    const option = world.options().find((each) => each.key === key)
    if (option === undefined) throw new Error(`the world is not deterministic: no ${key}`)
    await world.perform(option)
  }

  #reported({ broken, history }: World, path: readonly string[]): boolean {
    if (broken.length === 0) return false
    const { name } = this.#plan
    this.#explored.violations.push({ plan: name, path, broken, history: describeHistory(history) })
    return true
  }
}

/** What need not happen: a world in which nothing else can has come to rest. */
function isOptional({ optional, fault }: Option): boolean {
  return optional === true || fault !== undefined
}
