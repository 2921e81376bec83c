/** The lock of a key in Consul: https://developer.hashicorp.com/consul/api-docs/kv */

import type { FencingToken } from 'writefence'

/** What `GET /v1/kv/<key>?consistent` answers for a key, as far as it matters here. */
export interface KeyEntry {
  readonly Key: string
  readonly LockIndex: number
  readonly CreateIndex: number
  readonly ModifyIndex: number
  /** The session that has the lock; absent where nobody has. */
  readonly Session?: string
}

/**
 * The token of a holder. `PUT ?acquire=<session>` answers no more than `true`, so the entry is read
 * afterwards, and counts only if it is still locked by this session. `leaseId`: a random one, made
 * by the holder for this session.
 * @throws Error where it is not
 */
export function tokenOfConsul(
  jobId: string,
  entry: KeyEntry,
  session: string,
  leaseId: string,
): FencingToken {
  if (entry.Session !== session) throw new Error(`${entry.Key} is not locked by this session`)
  return { jobId, generation: entry.LockIndex, leaseId }
}
