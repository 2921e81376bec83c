/** Leases of Kubernetes: https://kubernetes.io/docs/concepts/architecture/leases/ */

import type { FencingToken } from 'writefence'

/** A `Lease` of `coordination.k8s.io/v1`, as far as it matters here. */
export interface Lease {
  readonly metadata: { readonly resourceVersion: string }
  readonly spec: {
    readonly holderIdentity?: string
    readonly leaseTransitions?: number
  }
}

/**
 * The token of a leader: the transitions, which begin at 0, and 1. `identity` is what this process
 * campaigned under, and no other one, before or after it. The lease is read once, when the process
 * is told that it leads. `leaseId`: a random one, made by the process for this identity.
 * @throws Error where somebody else holds the lease
 */
export function tokenOfKubernetes(
  jobId: string,
  { spec }: Lease,
  identity: string,
  leaseId: string,
): FencingToken {
  if (spec.holderIdentity !== identity) throw new Error(`${identity} does not hold the lease`)
  return { jobId, generation: (spec.leaseTransitions ?? 0) + 1, leaseId }
}
