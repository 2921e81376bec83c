/** The laws of the ports as data, for any engine and runner, and a probe for any destination. */

export type { FenceStoreContext, FenceStoreLaw } from './fence-store-context.ts'
export { fenceStoreLaws } from './fence-store-laws.ts'
export type { LeaseStoreContext, LeaseStoreLaw } from './lease-store-context.ts'
export { leaseStoreLaws } from './lease-store-laws.ts'
export type { ProbeFinding, ProbeOperation, ProbeOptions, ProbeProperty } from './probe.ts'
export { probeDestination } from './probe.ts'
export type { ProbeRequest } from './probe-http.ts'
