import { copyFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { openSqlite, SqliteLeaseStore } from 'writefence/sqlite'
import { refused } from '../../../src/conformance/fence-destination.ts'
import {
  open,
  published,
  SqliteDestination,
  temporaryFile,
} from '../../support/sqlite-destination.ts'

/** Opens the lease store for one use: its file has no log beside it in between. */
async function withLeases<T>(path: string, use: (leases: SqliteLeaseStore) => Promise<T>) {
  const db = openSqlite(path)
  const result = await use(new SqliteLeaseStore(db))
  db.close()
  return result
}

async function claimAndRelease(path: string) {
  return withLeases(path, async (leases) => {
    const claim = await leases.claim({ jobId: 'job', owner: 'w', ttlMs: 1000 })
    if (claim.status !== 'claimed') throw new Error(claim.status)
    await leases.release(claim.lease)
    return claim.lease
  })
}

describe('R121: a lease store that is restored from a snapshot', () => {
  it('mints tokens that are refused until its counter is raised', async () => {
    const path = temporaryFile('leases.sqlite')
    const snapshot = temporaryFile('snapshot.sqlite')
    const d = new SqliteDestination(open(temporaryFile()))
    const write = (lease: { jobId: string; generation: number; leaseId: string }, id: string) => {
      const { jobId, generation, leaseId } = lease
      return d.write({ token: { jobId, generation, leaseId }, operationId: id })
    }

    for (const id of ['g1', 'g2', 'g3', 'g4', 'g5']) await write(await claimAndRelease(path), id)
    copyFileSync(path, snapshot)
    for (const id of ['g6', 'g7']) await write(await claimAndRelease(path), id)
    copyFileSync(snapshot, path)

    const faults = published('fault')
    const sixth = await claimAndRelease(path)
    await refused(write(sixth, 'again 6'), 'stale', { highestGeneration: 7 })
    expect(faults).toEqual([])
    const seventh = await claimAndRelease(path)
    await refused(write(seventh, 'again 7'), 'conflict', { highestGeneration: 7 })
    expect(faults).toMatchObject([{ fault: 'conflict', jobId: 'job', generation: 7 }])

    const seen = await d.guard.inspect('job')
    await withLeases(path, (leases) => leases.raise('job', seen?.highestGeneration ?? 0))
    expect((await write(await claimAndRelease(path), 'g8')).status).toBe('applied')
    expect(d.log()).toEqual(['g1', 'g2', 'g3', 'g4', 'g5', 'g6', 'g7', 'g8'])
  })
})
