/** One large world, from its seed to its end, and what is left of it when it is shrunk. */

import type { Option } from './agenda.ts'
import { heal } from './heal.ts'
import type { HistoryEvent } from './history.ts'
import type { Lab } from './lab.ts'
import type { Plan } from './plan.ts'
import { Prng } from './prng.ts'
import { type Swarm, swarmOf } from './swarm.ts'
import { VirtualHost } from './virtual-host.ts'
import { type Broken, World } from './world.ts'

export interface Run {
  readonly plan: Plan
  /** What was let happen, one after the other. */
  readonly steps: readonly string[]
  readonly history: readonly HistoryEvent[]
  readonly broken: readonly Broken[]
}

/** Where runs take place: the machine has to be {@link install}ed over `host`. */
export class Simulator {
  readonly #lab: Lab
  #host = new VirtualHost()

  constructor(lab: Lab) {
    this.#lab = lab
  }

  get host(): VirtualHost {
    return this.#host
  }

  /** The same to the letter for the same seed. `bend` is for trying it on broken stores. */
  async run(seed: number, bend: (plan: Plan) => Plan = (plan) => plan): Promise<Run> {
    const swarm = swarmOf(seed)
    const plan = bend(swarm.plan)
    const world = await this.#begin(plan)
    const steps: string[] = []
    while (steps.length < swarm.steps && world.broken.length === 0 && !world.over) {
      const option = pick(world.options(), swarm)
      if (option === undefined) break
      steps.push(option.key)
      await world.perform(option)
    }
    return this.#end(world, steps)
  }

  /** Lets these happen as far as they can, and nothing else. */
  async replay(plan: Plan, keys: readonly string[]): Promise<Run> {
    const world = await this.#begin(plan)
    const steps: string[] = []
    for (const key of keys) {
      const option = world.options().find((each) => each.key === key)
      if (option === undefined) continue
      steps.push(key)
      await world.perform(option)
      if (world.broken.length > 0) break
    }
    return this.#end(world, steps)
  }

  async #begin(plan: Plan): Promise<World> {
    // What the product itself leaves to chance must not depend on what was drawn before.
    this.#host = new VirtualHost(new Prng(1))
    await this.#lab.clear()
    const world = new World(plan, this.#lab, this.#host)
    await world.settled()
    return world
  }

  async #end(world: World, steps: readonly string[]): Promise<Run> {
    if (world.broken.length === 0) await heal(world)
    const { plan, history, broken } = world
    return { plan, steps, history, broken }
  }
}

function pick(options: readonly Option[], { weight, prng }: Swarm): Option | undefined {
  const weighed = options.map((option) => ({ option, weight: weight(kindOf(option)) }))
  let left = prng.float() * weighed.reduce((sum, each) => sum + each.weight, 0)
  for (const each of weighed) {
    left -= each.weight
    if (left < 0) return each.option
  }
  return options.at(-1)
}

function kindOf({ key }: Option): string {
  return key.slice(0, key.indexOf(' '))
}
