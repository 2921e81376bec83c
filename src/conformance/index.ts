/** The laws of the ports as data: they run on any engine, with any test runner. */

export type { FenceStoreContext, FenceStoreLaw } from './fence-store-context.ts'
export { fenceStoreLaws } from './fence-store-laws.ts'
export type { LeaseStoreContext, LeaseStoreLaw } from './lease-store-context.ts'
export { leaseStoreLaws } from './lease-store-laws.ts'
