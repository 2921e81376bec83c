/** The services of another process: leases and fences over HTTP. */

export { type HttpDestination, httpDestination } from './http-destination.ts'
export { HttpLeaseStore } from './http-lease-store.ts'
export type { HttpServiceOptions } from './http-service.ts'
