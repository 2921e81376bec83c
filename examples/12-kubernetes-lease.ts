/**
 * Kubernetes: the generation is the leaseTransitions of a Lease that is never deleted, and 1.
 *
 * No Kubernetes is asked here: the leases are written out, as client-go's leader election makes
 * them.
 */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { write, written } from './issuers/destination.ts'
import { type Lease, tokenOfKubernetes } from './issuers/kubernetes.ts'

const lease = (
  resourceVersion: string,
  holderIdentity: string,
  leaseTransitions: number,
): Lease => ({
  metadata: { resourceVersion },
  spec: { holderIdentity, leaseTransitions },
})

// An identity is of one process: the name of a pod alone outlives a restart of its container.
const [a, b] = [`pod-a_${randomUUID()}`, `pod-b_${randomUUID()}`]
const created = lease('4100', a, 0)
const renewed = lease('4177', a, 0)
const takenOver = lease('4302', b, 1)

const [idOfA, idOfB] = [randomUUID(), randomUUID()] // one leaseId for each identity
const tokenOfA = tokenOfKubernetes('report', created, a, idOfA)
assert.equal(tokenOfA.generation, 1)
assert.equal(await write(tokenOfA, 'A'), 'written')
assert.deepEqual(tokenOfKubernetes('report', renewed, a, idOfA), tokenOfA)

const tokenOfB = tokenOfKubernetes('report', takenOver, b, idOfB)
assert.equal(await write(tokenOfB, 'B'), 'written')
assert.equal(await write(tokenOfA, 'A, late'), 'stale')
assert.deepEqual(written('report'), ['A', 'B'])

// A reads the lease too late, and finds B's.
assert.throws(() => tokenOfKubernetes('report', takenOver, a, idOfA), /does not hold/)

// What goes wrong otherwise. ---------------------------------------------------------------------

const bad = (jobId: string, generation: number) => ({ jobId, generation })

// The transitions as they are: the first holder of all has 0, which is no generation.
await assert.rejects(write(bad('from 0', 0), 'A'), RangeError)

// One identity for two processes: to client-go the restarted one is the holder that it knows, and
// nothing is counted. The leaseId shows that they are two; without it both write.
const first = tokenOfKubernetes('identity', lease('5000', 'pod-0', 3), 'pod-0', randomUUID())
const restarted = tokenOfKubernetes('identity', lease('5030', 'pod-0', 3), 'pod-0', randomUUID())
assert.equal(restarted.generation, first.generation)
assert.equal(await write(first, 'before the restart'), 'written')
assert.equal(await write(restarted, 'after the restart'), 'conflict')
assert.equal(await write(bad('bare', first.generation), 'before the restart'), 'written')
assert.equal(await write(bad('bare', restarted.generation), 'after the restart'), 'written')
assert.equal(await write(bad('bare', first.generation), 'late'), 'written') // a stale one

// A Lease that is deleted is counted from 0 again.
const again = tokenOfKubernetes('report', lease('6000', a, 0), a, idOfA)
assert.equal(await write(again, 'A'), 'stale') // a good one

// The resourceVersion changes with every renewal, and with every label that somebody puts on the
// object: A's own request, sent before a renewal and arriving after the next one, is refused.
const version = ({ metadata }: Lease) => bad('resourceVersion', Number(metadata.resourceVersion))
assert.equal(await write(version(renewed), 'A, second'), 'written')
assert.equal(await write(version(created), 'A, first'), 'stale')
