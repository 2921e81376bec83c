import { WriteGuard } from 'writefence'
import { faultyStore } from './faulty-store.ts'
import { type Options, published, SqliteDestination } from './sqlite-destination.ts'

/** A guard whose store fails as planned, its destination, and the faults that are published. */
export function faultyDestination(options: Options = {}) {
  const d = new SqliteDestination()
  const { store, plan } = faultyStore(d.store)
  return { d, plan, guard: new WriteGuard(store, options), faults: published('fault') }
}
