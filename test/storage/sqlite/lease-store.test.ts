import { copyFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type ClaimResult, type Lease, StoreUnavailableError, WriteGuard } from 'writefence'
import { openSqlite, SqliteFenceStore, SqliteLeaseStore } from 'writefence/sqlite'
import type { LeaseRow } from '../../../src/lease/lease-rules.ts'
import type { SqliteDatabase } from '../../../src/storage/sqlite/sqlite-database.ts'
import { leaseStatements } from '../../../src/storage/sqlite/sqlite-lease-statements.ts'
import { open, temporaryFile } from '../../support/sqlite-destination.ts'

const TTL = 30_000
const request = { jobId: 'job', owner: 'w', ttlMs: TTL }

function claimed(answer: ClaimResult): Lease {
  if (answer.status !== 'claimed') throw new Error(`expected a lease: ${answer.status}`)
  return answer.lease
}

describe('leases in a file', () => {
  it('a generation does not come back after the store is reopened', async () => {
    const path = temporaryFile()
    for (const generation of [1, 2, 3]) {
      const db = openSqlite(path)
      const store = new SqliteLeaseStore(db)
      const lease = claimed(await store.claim(request))
      expect(lease.generation).toBe(generation)
      await store.release(lease)
      db.close()
    }
  })

  it('R02: the end of a lease is reckoned when it is written, not when asked for', async () => {
    let now = 1_000_000
    const db = open(temporaryFile())
    const store = new SqliteLeaseStore(db, { now: () => now })
    db.exec('BEGIN IMMEDIATE')
    const claim = store.claim({ ...request, ttlMs: 5_000 })
    now += 6_000
    db.exec('COMMIT')
    expect(claimed(await claim).leaseUntil).toBe(now + 5_000)
  })

  it('R01: the time is the database’s, to the millisecond', async () => {
    const store = new SqliteLeaseStore(openSqlite(':memory:'))
    const before = Date.now()
    const { leaseUntil } = claimed(await store.claim(request))
    expect(leaseUntil - TTL).toBeGreaterThanOrEqual(before - 1)
    expect(leaseUntil - TTL).toBeLessThanOrEqual(Date.now() + 1)
  })

  it('R17: the table takes no lease without an end, an owner or a leaseId', async () => {
    const db = openSqlite(':memory:')
    const store = new SqliteLeaseStore(db)
    await store.claim(request)
    for (const change of [
      'lease_until = NULL',
      'ttl = NULL',
      'ttl = 0',
      'owner = NULL',
      'lease_id = NULL',
      'generation = 0',
      'generation = 1000000000000000',
      "generation = 'seven'",
      "status = 'running'",
      "status = 'released'",
    ]) {
      const sql = `UPDATE writefence_lease SET ${change}`
      expect(() => db.exec(sql), change).toThrow(/constraint failed|cannot store/)
    }
    expect(await store.get('job')).toMatchObject({ generation: 1, status: 'leased' })
  })

  it('R17: an absurdly far end is cut down to the ttl by the next claim', async () => {
    const db = openSqlite(':memory:')
    const now = 1_700_000_000_000
    const store = new SqliteLeaseStore(db, { now: () => now })
    await store.claim(request)
    db.exec(`UPDATE writefence_lease SET lease_until = ${Number.MAX_SAFE_INTEGER}`)
    const answer = await store.claim(request)
    expect(answer).toMatchObject({ status: 'held', retryAfterMs: TTL, leaseUntil: now + TTL })
    expect(await store.get('job')).toMatchObject({ leaseUntil: now + TTL })
  })

  it('R121: a snapshot that was put back cannot pass for the present', async () => {
    const destination = open(temporaryFile())
    const guard = new WriteGuard(new SqliteFenceStore(destination))
    const path = temporaryFile()
    const restored = temporaryFile()
    const db = openSqlite(path)
    const store = new SqliteLeaseStore(db)
    await store.raise('job', 4)
    await store.release(claimed(await store.claim(request)))
    db.pragma('wal_checkpoint(TRUNCATE)')
    copyFileSync(path, restored)
    await store.release(claimed(await store.claim(request)))
    const newest = claimed(await store.claim(request))
    expect(newest.generation).toBe(7)
    await guard.advance(newest)
    db.close()

    const again = new SqliteLeaseStore(open(restored))
    const stale = claimed(await again.claim(request))
    await expect(guard.advance(stale)).rejects.toMatchObject({ code: 'stale' })
    await again.release(stale)
    const twin = claimed(await again.claim(request))
    expect(twin.generation).toBe(7)
    await expect(guard.advance(twin)).rejects.toMatchObject({ code: 'conflict' })
    // The operator, told by the alarm, raises the counter above what the destination has seen.
    await again.raise('job', 8)
    const good = claimed(await again.claim(request))
    expect(await guard.advance(good)).toMatchObject({ highestGeneration: 9 })
  })

  it('generations are numbers on a handle that makes bigints of all others', async () => {
    const db = openSqlite(':memory:')
    db.defaultSafeIntegers(true)
    const store = new SqliteLeaseStore(db)
    await store.raise('job', 999_999_999_999_997)
    const lease = claimed(await store.claim(request))
    expect(lease.generation).toBe(999_999_999_999_998)
    expect(await store.renew(lease)).toMatchObject({ status: 'renewed' })
    expect(await store.list({ limit: 5 })).toMatchObject([{ generation: lease.generation }])
  })
})

describe('the row of a lease', () => {
  const job = { jobId: 'job', generation: 7 }
  const holder = { owner: 'w', leaseId: 'a' }
  it.each<[string, LeaseRow]>([
    ['leased', { ...job, ...holder, status: 'leased', ttlMs: 5, leaseUntil: 6 }],
    [
      'completed by its holder, too late',
      { ...job, ...holder, status: 'completed', endedBy: 'holder', lapsed: true, endedAt: 5 },
    ],
    [
      'released by an operator',
      { ...job, ...holder, status: 'released', endedBy: 'operator', lapsed: false, endedAt: 5 },
    ],
    ['that is a tombstone', { ...job, status: 'released', endedBy: 'holder', lapsed: false }],
  ])('%s comes back as it was put', (_, row) => {
    const db = open()
    new SqliteLeaseStore(db)
    const statements = leaseStatements(db, () => 42)
    expect(statements.find('job')).toEqual({ row: undefined, now: 42 })
    statements.put(row)
    expect(statements.find('job')).toEqual({ row, now: 42 })
  })
})

describe('a database that does not answer', () => {
  it('a claim that another connection locks out is withdrawn, and lands no more', async () => {
    const path = temporaryFile()
    const store = new SqliteLeaseStore(open(path), { busyTimeoutMs: 30 })
    const other = open(path)
    other.exec('BEGIN IMMEDIATE')
    await expect(store.claim(request)).rejects.toBeInstanceOf(StoreUnavailableError)
    other.exec('COMMIT')
    expect(await store.get('job')).toBeUndefined()
    expect(claimed(await store.claim(request)).generation).toBe(1)
  })

  it('R128: a handle that is closed, or read-only, is a store that is not available', async () => {
    const path = temporaryFile()
    const db = open(path)
    const store = new SqliteLeaseStore(db)
    const lease = claimed(await store.claim(request))
    db.close()
    for (const call of [
      () => store.renew(lease),
      () => store.complete(lease),
      () => store.release(lease),
      () => store.get('job'),
      () => store.list(),
      () => store.prune({ olderThanMs: 0 }),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: 'store_unavailable' })
    }
    const readonly = new Database(path, { readonly: true })
    readonly.pragma('synchronous = FULL')
    onTestFinished(() => void readonly.close())
    const reader = new SqliteLeaseStore(readonly)
    expect(await reader.get('job')).toMatchObject({ status: 'leased' })
    await expect(reader.release(lease)).rejects.toBeInstanceOf(StoreUnavailableError)
  })

  it('what a transaction of the user has changed is not told before it is committed', async () => {
    const db = open(temporaryFile())
    const store = new SqliteLeaseStore(db)
    await store.claim(request)
    db.exec("BEGIN IMMEDIATE; UPDATE writefence_lease SET owner = 'nobody'")
    const reads = [store.get('job'), store.list().then(([first]) => first)]
    db.exec('ROLLBACK')
    for (const read of reads) expect(await read).toMatchObject({ owner: 'w' })
  })
})

describe('the plans of the statements', () => {
  const db = openSqlite(':memory:')
  new SqliteLeaseStore(db)
  const texts: string[] = []
  leaseStatements(
    {
      prepare: (sql: string) => {
        texts.push(sql)
        return { safeIntegers: () => {} }
      },
    } as unknown as SqliteDatabase,
    undefined,
  )
  const planOf = (part: string): string => {
    const sql = texts.find((text) => text.includes(part)) ?? ''
    const named = { at: 0, status: null, owner: null, expired: null, after: '', limit: 1 }
    const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`)
    const values = Array.from(sql.matchAll(/\?/g), () => 0)
    const rows = sql.includes('@') ? plan.all(named) : plan.all(...values)
    return (rows as { detail: string }[]).map(({ detail }) => detail).join('\n')
  }

  it('a job is found by its key, and a page of a list begins where the last one ended', () => {
    expect(planOf('LEFT JOIN')).toContain('PRIMARY KEY (job_id=?)')
    expect(planOf('ORDER BY job_id')).toBe('SEARCH writefence_lease USING PRIMARY KEY (job_id>?)')
  })

  it('R127: pruning looks at nothing but what has ended long enough ago', () => {
    expect(planOf('UPDATE')).toContain('writefence_lease_ended (ended_at<?)')
    expect(planOf('UPDATE')).not.toMatch(/SCAN|TEMP B-TREE/)
  })
})
