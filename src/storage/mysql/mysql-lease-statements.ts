/** The SQL of the lease store, and its rows turned into the rows of its rules. */

import type { checkLeasePrune, checkLeaseQuery } from '../../lease/lease-arguments.ts'
import type { LeaseRow } from '../../lease/lease-rules.ts'
import { bytes, type MysqlSettings, SQL_NOW } from './mysql-database.ts'
import {
  type MysqlRow,
  type MysqlServer,
  type MysqlSession,
  toNumber,
  toText,
} from './mysql-session.ts'
import type { MysqlTables } from './mysql-tables.ts'

const COLUMNS = [
  'job_id',
  'generation',
  'status',
  'owner',
  'lease_id',
  'ttl',
  'lease_until',
  'ended_by',
  'lapsed',
  'ended_at',
] as const

type StoredLease = MysqlRow<(typeof COLUMNS)[number]>

export class MysqlLeaseStatements {
  readonly #lease: string
  readonly #given: (() => number) | undefined

  constructor(tables: MysqlTables, { now }: MysqlSettings) {
    this.#lease = tables.name('lease')
    this.#given = now
  }

  /** Locks the job, by its row or, where there is none yet, by a new one of generation 0. */
  async lock(session: MysqlSession, jobId: string, server: MysqlServer): Promise<void> {
    await session.runWaiting(
      `INSERT INTO ${this.#lease} (job_id, generation, status, ended_by, lapsed, revision)
       VALUES (${bytes(jobId)}, 0, 'released', 'operator', 0, 1)
       ON DUPLICATE KEY UPDATE revision = revision`,
      server,
    )
  }

  /** The row, and the time as of this statement. */
  async find(
    session: MysqlSession,
    jobId: string,
  ): Promise<{ readonly row: LeaseRow | undefined; readonly now: number }> {
    const [row] = await session.rows<keyof StoredLease | 'now'>(
      `SELECT ${COLUMNS.join(', ')}, ${this.#now()} AS now FROM ${this.#lease}
       WHERE job_id = ${bytes(jobId)}`,
    )
    return { row: row && toRow(row), now: toNumber(row?.now) }
  }

  /**
   * Answers whether the row was put. A lease that is over before it is written is not: this store
   * was held up since it read the time.
   */
  async put(session: MysqlSession, row: LeaseRow): Promise<boolean> {
    const { jobId, generation, status, owner, leaseId } = row
    const leased = row.status === 'leased' ? row : undefined
    const ended = row.status === 'leased' ? undefined : row
    const inTime =
      leased === undefined || this.#given !== undefined
        ? ''
        : `AND ${SQL_NOW} < ${leased.leaseUntil}`
    const found = await session.run(
      `UPDATE ${this.#lease} SET generation = ${generation}, status = '${status}',
         owner = ${bytes(owner)}, lease_id = ${bytes(leaseId)}, ttl = ${leased?.ttlMs ?? 'NULL'},
         lease_until = ${leased?.leaseUntil ?? 'NULL'},
         ended_by = ${ended === undefined ? 'NULL' : `'${ended.endedBy}'`},
         lapsed = ${ended?.lapsed ? 1 : 0}, ended_at = ${ended?.endedAt ?? 'NULL'},
         revision = revision + 1
       WHERE job_id = ${bytes(jobId)} ${inTime}`,
    )
    return found > 0
  }

  /** Changes the row without a word, so that the commit has something to make durable. */
  async touch(session: MysqlSession, jobId: string): Promise<void> {
    await session.run(
      `UPDATE ${this.#lease} SET revision = revision + 1 WHERE job_id = ${bytes(jobId)}`,
    )
  }

  async list(
    session: MysqlSession,
    { status, owner, expired, after, limit }: ReturnType<typeof checkLeaseQuery>,
  ): Promise<{ readonly rows: LeaseRow[]; readonly now: number }> {
    const now = await this.#time(session)
    // A tombstone is what has ended without a time of its end.
    const conditions = ["(status = 'leased' OR ended_at IS NOT NULL)"]
    if (status !== undefined) conditions.push(`status = '${status}'`)
    if (owner !== undefined) conditions.push(`owner = ${bytes(owner)}`)
    if (expired !== undefined) {
      conditions.push(`status = 'leased' AND lease_until ${expired ? '<=' : '>'} ${now}`)
    }
    if (after !== undefined) conditions.push(`job_id > ${bytes(after)}`)
    const stored = await session.rows<keyof StoredLease>(
      `SELECT ${COLUMNS.join(', ')} FROM ${this.#lease} WHERE ${conditions.join(' AND ')}
       ORDER BY job_id LIMIT ${limit}`,
    )
    return { rows: stored.map(toRow).filter((row) => row !== undefined), now }
  }

  /** Answers how many have become tombstones. */
  prune(
    session: MysqlSession,
    { olderThanMs, limit }: ReturnType<typeof checkLeasePrune>,
    server: MysqlServer,
  ): Promise<number> {
    return session.runWaiting(
      `UPDATE ${this.#lease} SET owner = NULL, lease_id = NULL, ended_at = NULL,
         revision = revision + 1
       WHERE ended_at <= ${this.#now()} - ${olderThanMs} ORDER BY ended_at LIMIT ${limit}`,
      server,
    )
  }

  async #time(session: MysqlSession): Promise<number> {
    const [row] = await session.rows<'now'>(`SELECT ${this.#now()} AS now`)
    return toNumber(row?.now)
  }

  #now(): string {
    return String(this.#given?.() ?? SQL_NOW)
  }
}

function toRow(stored: StoredLease): LeaseRow | undefined {
  const generation = toNumber(stored.generation)
  if (generation === 0) return undefined
  const jobId = toText(stored.job_id) ?? ''
  const owner = toText(stored.owner)
  const leaseId = toText(stored.lease_id)
  const status = toText(stored.status) as LeaseRow['status']
  if (status !== 'leased') {
    const endedBy = toText(stored.ended_by) as 'holder' | 'operator'
    const lapsed = toNumber(stored.lapsed) === 1
    const endedAt = stored.ended_at === null ? undefined : toNumber(stored.ended_at)
    return { status, jobId, generation, owner, leaseId, endedBy, lapsed, endedAt }
  }
  // The table refuses a lease without them.
  const held = { owner: owner ?? '', leaseId: leaseId ?? '' }
  const [ttlMs, leaseUntil] = [toNumber(stored.ttl), toNumber(stored.lease_until)]
  return { status, jobId, generation, ...held, ttlMs, leaseUntil }
}
