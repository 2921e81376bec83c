/** The databases that worlds are built on, one world at a time. */

import type { Databases, DestinationDatabase, LeaseDatabase } from './databases.ts'

const engines = ['sqlite', 'postgres', 'mariadb', 'redis'] as const
export type Engine = (typeof engines)[number]

/** The engine that an option of a script names; says so and ends the process where it is none. */
export function engineOf(name: string): Engine {
  const found = engines.find((each) => each === name)
  if (found !== undefined) return found
  console.error(`--engine takes ${engines.join(', ')}, not ${name}`)
  return process.exit(2)
}

/** Every destination that a plan may have. */
const DESTINATIONS = ['bank', 'shop']

/** Loaded when they are asked for: no driver is needed for another engine. */
const openers: Readonly<Record<Engine, (names: readonly string[]) => Promise<Databases>>> = {
  sqlite: async (names) =>
    (await import('./engines/sqlite-databases.ts')).openSqliteDatabases(names),
  postgres: async (names) =>
    (await import('./engines/postgres-databases.ts')).openPostgresDatabases(names),
  mariadb: async (names) =>
    (await import('./engines/mariadb-databases.ts')).openMariadbDatabases(names),
  redis: async (names) => (await import('./engines/redis-databases.ts')).openRedisDatabases(names),
}

export class Lab {
  readonly #databases: Databases

  private constructor(databases: Databases) {
    this.#databases = databases
  }

  /**
   * Connects, on the real machine: not while another one is installed in its place.
   * @throws whatever the driver throws where the server does not answer
   */
  static async open(engine: Engine = 'sqlite'): Promise<Lab> {
    return new Lab(await openers[engine](DESTINATIONS))
  }

  get leases(): LeaseDatabase {
    return this.#databases.leases
  }

  destination(name: string): DestinationDatabase {
    const found = this.#databases.destinations.get(name)
    if (found === undefined) throw new RangeError(`the lab has no destination ${name}`)
    return found
  }

  /** Empties all of it, for the next world. */
  async clear(): Promise<void> {
    const { leases, destinations } = this.#databases
    await Promise.all([leases, ...destinations.values()].map((database) => database.clear()))
  }

  end(): Promise<void> {
    return this.#databases.end()
  }
}

const opened = new Map<Engine, Promise<Lab>>()

/** The lab of this process: opening one takes longer than many worlds. */
export function labOf(engine: Engine = 'sqlite'): Promise<Lab> {
  const known = opened.get(engine) ?? Lab.open(engine)
  opened.set(engine, known)
  return known
}

/** Ends what {@link labOf} has opened. */
export async function endLabs(): Promise<void> {
  const labs = [...opened.values()]
  opened.clear()
  for (const lab of await Promise.allSettled(labs)) {
    if (lab.status === 'fulfilled') await lab.value.end()
  }
}
