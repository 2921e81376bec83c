/** Lease stores with the faults that those of one's own have, each around the real one. */

import type { LeaseKey, LeaseStore } from 'writefence'

export interface BrokenLeases {
  readonly name: string
  /** A world that shows it. */
  readonly world: string
  readonly brokenLeases: (real: LeaseStore) => LeaseStore
}

/** The same verbs as the store has, some of them in another way. */
function changed(real: LeaseStore, other: Partial<LeaseStore>): LeaseStore {
  return {
    claim: (request) => real.claim(request),
    renew: (lease) => real.renew(lease),
    complete: (lease) => real.complete(lease),
    release: (lease) => real.release(lease),
    get: (jobId) => real.get(jobId),
    list: (query) => real.list(query),
    raise: (jobId, atLeast) => real.raise(jobId, atLeast),
    forceRelease: (jobId) => real.forceRelease(jobId),
    reopen: (jobId) => real.reopen(jobId),
    prune: (request) => real.prune(request),
    close: () => real.close(),
    ...other,
  }
}

/** The row goes when the lease ends, and the generation with it. */
function counterDies(real: LeaseStore): LeaseStore {
  const forgotten = new Map<string, number>()
  const known = <K extends LeaseKey>(key: K): K => ({
    ...key,
    generation: key.generation + (forgotten.get(key.jobId) ?? 0),
  })
  return changed(real, {
    claim: async (request) => {
      const answer = await real.claim(request)
      if (answer.status !== 'claimed') return answer
      const { lease } = answer
      const generation = lease.generation - (forgotten.get(lease.jobId) ?? 0)
      return { status: 'claimed', lease: { ...lease, generation } }
    },
    renew: (lease) => real.renew(known(lease)),
    complete: (lease) => real.complete(known(lease)),
    release: async (lease) => {
      const key = known(lease)
      const answer = await real.release(key)
      if (answer.status === 'released') forgotten.set(key.jobId, key.generation)
      return answer
    },
  })
}

/** Whoever names the job has its lease. */
function byJob(real: LeaseStore): LeaseStore {
  const holders = new Map<string, LeaseKey>()
  const holder = <K extends LeaseKey>(key: K): K => ({ ...key, ...holders.get(key.jobId) })
  return changed(real, {
    claim: async (request) => {
      const answer = await real.claim(request)
      if (answer.status === 'claimed') {
        const { jobId, owner, generation, leaseId } = answer.lease
        holders.set(jobId, { jobId, owner, generation, leaseId })
      }
      return answer
    },
    renew: (lease) => real.renew(holder(lease)),
    complete: (lease) => real.complete(holder(lease)),
    release: (lease) => real.release(holder(lease)),
  })
}

/** A claim that is refused takes the lease away instead. */
function steals(real: LeaseStore): LeaseStore {
  return changed(real, {
    claim: async (request) => {
      const answer = await real.claim(request)
      if (answer.status !== 'held') return answer
      await real.forceRelease(request.jobId)
      return real.claim(request)
    },
  })
}

/** A completed job can be claimed like any other. */
function forgetsCompletion(real: LeaseStore): LeaseStore {
  return changed(real, {
    claim: async (request) => {
      await real.reopen(request.jobId)
      return real.claim(request)
    },
  })
}

/** Each with a world that shows it. */
export const brokenLeases: readonly BrokenLeases[] = [
  {
    name: 'its counter dies with its row',
    world: 'claims and renewals while the clock is set back and forward',
    brokenLeases: counterDies,
  },
  {
    name: 'knows a lease by its job',
    world: 'claims and renewals while the clock is set back and forward',
    brokenLeases: byJob,
  },
  { name: 'grants what is held', world: 'claim, write, seal, complete', brokenLeases: steals },
  {
    name: 'forgets that a job is completed',
    world: 'claim, write, seal, complete',
    brokenLeases: forgetsCompletion,
  },
]
