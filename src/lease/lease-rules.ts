/**
 * The rules of a lease store (rules 1 to 4 and 6), pure: an engine locks the row of the job, reads
 * it together with its own time, asks the rule, and puts what the rule says, all in one atomic
 * step. It restates none of this.
 */

import { StoreUnavailableError } from '../errors.ts'
import { MAX_GENERATION } from '../token.ts'
import type {
  ClaimResult,
  CompleteResult,
  Lease,
  LeaseEnd,
  LeaseKey,
  LeaseRecord,
  LostResult,
  ReleaseResult,
  RenewResult,
} from './lease-store.ts'

/** What a store keeps of a job. A row is never deleted: its generation must not come back. */
export type LeaseRow = LeasedRow | EndedRow

interface LeasedRow {
  readonly status: 'leased'
  readonly jobId: string
  readonly generation: number
  readonly owner: string
  readonly leaseId: string
  readonly ttlMs: number
  /** Epoch milliseconds of the store's clock. */
  readonly leaseUntil: number
}

interface EndedRow {
  readonly status: 'released' | 'completed'
  readonly jobId: string
  readonly generation: number
  /** Who had this generation; absent where nobody had it, or in a tombstone. */
  readonly owner?: string | undefined
  readonly leaseId?: string | undefined
  /** Who ended it: a repetition is answered the same to the one who did. */
  readonly endedBy: 'holder' | 'operator'
  /** Completed after it had expired: a repetition says so again. */
  readonly lapsed?: boolean | undefined
  /** Epoch milliseconds of the store's clock; absent in a tombstone. */
  readonly endedAt?: number | undefined
}

/** The answer, and the row to put in place of what there is; nothing is put where it is absent. */
export interface LeaseRuling<A> {
  readonly answer: A
  readonly put?: LeaseRow | undefined
}

export function claimRule(
  row: LeaseRow | undefined,
  request: { readonly jobId: string; readonly owner: string; readonly ttlMs: number },
  leaseId: string,
  now: number,
): LeaseRuling<ClaimResult | StoreUnavailableError> {
  const { jobId, owner, ttlMs } = request
  if (row?.status === 'completed') {
    return { answer: { status: 'completed', generation: row.generation } }
  }
  if (row?.status === 'leased' && now < row.leaseUntil) {
    if (row.leaseId === leaseId && row.owner === owner) {
      return { answer: { status: 'claimed', lease: leaseOf(row) } }
    }
    return held(row, now)
  }
  const generation = (row?.generation ?? 0) + 1
  if (generation > MAX_GENERATION) {
    const used = `the generations of job ${JSON.stringify(jobId)} are used up`
    return { answer: new StoreUnavailableError(used, { retryable: false }) }
  }
  const leaseUntil = now + ttlMs
  const put: LeasedRow = { status: 'leased', jobId, generation, owner, leaseId, ttlMs, leaseUntil }
  return { answer: { status: 'claimed', lease: leaseOf(put) }, put }
}

/** A lease never lasts longer than its ttl from now: if it seems to, the clock was set back. */
function held(row: LeasedRow, now: number): LeaseRuling<ClaimResult> {
  const leaseUntil = Math.min(row.leaseUntil, now + row.ttlMs)
  const { owner, generation } = row
  return {
    answer: { status: 'held', owner, generation, leaseUntil, retryAfterMs: leaseUntil - now },
    put: leaseUntil === row.leaseUntil ? undefined : { ...row, leaseUntil },
  }
}

export function renewRule(
  row: LeaseRow | undefined,
  key: LeaseKey,
  ttlMs: number,
  now: number,
): LeaseRuling<RenewResult> {
  if (!isHolder(row, key) || row.status !== 'leased') return lost(row, key)
  const put = { ...row, ttlMs, leaseUntil: now + ttlMs }
  const lapsed = now >= row.leaseUntil
  return { answer: { status: 'renewed', lease: leaseOf(put), lapsed }, put }
}

export function completeRule(
  row: LeaseRow | undefined,
  key: LeaseKey,
  now: number,
): LeaseRuling<CompleteResult> {
  if (!isHolder(row, key) || row.status === 'released') return lost(row, key)
  if (row.status !== 'leased')
    return { answer: { status: 'completed', lapsed: row.lapsed ?? false } }
  const lapsed = now >= row.leaseUntil
  return {
    answer: { status: 'completed', lapsed },
    put: { ...ended(row, 'completed', now), lapsed },
  }
}

export function releaseRule(
  row: LeaseRow | undefined,
  key: LeaseKey,
  now: number,
): LeaseRuling<ReleaseResult> {
  if (!isHolder(row, key) || row.status === 'completed') return lost(row, key)
  if (row.status === 'leased') {
    return { answer: { status: 'released' }, put: ended(row, 'released', now) }
  }
  return row.endedBy === 'holder' ? { answer: { status: 'released' } } : lost(row, key)
}

/** Acts only below `atLeast`, so that a repetition after a new claim takes nothing from it. */
export function raiseRule(
  row: LeaseRow | undefined,
  jobId: string,
  atLeast: number,
  now: number,
): LeaseRuling<LeaseRecord> {
  if (row !== undefined && row.generation >= atLeast) return { answer: recordOf(row, now) }
  const status = row?.status === 'completed' ? 'completed' : 'released'
  const put: EndedRow = {
    status,
    jobId,
    generation: atLeast,
    endedBy: 'operator',
    endedAt: now,
  }
  return { answer: recordOf(put, now), put }
}

export function forceReleaseRule(
  row: LeaseRow | undefined,
  now: number,
): LeaseRuling<LeaseRecord | undefined> {
  if (row?.status !== 'leased') return { answer: row && recordOf(row, now) }
  const put: EndedRow = { ...ended(row, 'released', now), endedBy: 'operator' }
  return { answer: recordOf(put, now), put }
}

export function reopenRule(
  row: LeaseRow | undefined,
  now: number,
): LeaseRuling<LeaseRecord | undefined> {
  if (row?.status !== 'completed') return { answer: row && recordOf(row, now) }
  const put: EndedRow = { ...row, status: 'released', endedBy: 'operator', endedAt: now }
  return { answer: recordOf(put, now), put }
}

/** What the world may see of a row; never the leaseId. */
export function recordOf(row: LeaseRow, now: number): LeaseRecord {
  const { jobId, generation, status, owner } = row
  if (row.status !== 'leased') return { jobId, generation, status, owner }
  const { leaseUntil, ttlMs } = row
  return { jobId, generation, status, owner, leaseUntil, ttlMs, expired: now >= leaseUntil }
}

/** Owner, generation and leaseId: any one of them can be another's (rule 2). */
function isHolder(row: LeaseRow | undefined, key: LeaseKey): row is LeaseRow {
  return (
    row !== undefined &&
    row.generation === key.generation &&
    row.owner === key.owner &&
    row.leaseId === key.leaseId
  )
}

function lost(row: LeaseRow | undefined, key: LeaseKey): { readonly answer: LostResult } {
  return { answer: { status: 'lost', reason: reasonOf(row, key) } }
}

function reasonOf(row: LeaseRow | undefined, key: LeaseKey): LeaseEnd {
  // A generation that was never given out here: the store was restored, or it is another one.
  if (row === undefined || row.generation < key.generation) return 'unknown_job'
  const elses = row.leaseId !== undefined && !isHolder(row, key)
  if (row.generation > key.generation || elses) return 'superseded'
  return row.status === 'completed' ? 'completed' : 'released'
}

function ended(
  { jobId, generation, owner, leaseId }: LeasedRow,
  status: 'released' | 'completed',
  endedAt: number,
): EndedRow {
  return { status, jobId, generation, owner, leaseId, endedBy: 'holder', endedAt }
}

function leaseOf({ jobId, generation, leaseId, owner, leaseUntil, ttlMs }: LeasedRow): Lease {
  return { jobId, generation, leaseId, owner, leaseUntil, ttlMs }
}
