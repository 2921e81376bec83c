/** The databases that worlds are built on, one world at a time. */

import { DestinationDatabase } from './destination-database.ts'
import { LeaseDatabase } from './lease-database.ts'

export class Lab {
  readonly leases = new LeaseDatabase()
  readonly #destinations = new Map<string, DestinationDatabase>()

  destination(name: string): DestinationDatabase {
    const known = this.#destinations.get(name)
    if (known !== undefined) return known
    const database = new DestinationDatabase()
    this.#destinations.set(name, database)
    return database
  }
}
