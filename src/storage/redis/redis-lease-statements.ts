/** The scripts of the lease store, called with its keys. A row is kept as one text of JSON. */

import type { LeaseRow } from '../../lease/lease-rules.ts'
import { script } from './redis-connection.ts'
import { ENTER, parsed, type RedisKeyspace } from './redis-schema.ts'

/** KEYS: version, then the rows. */
export const ROWS = script(`${ENTER}
local rows = {}
for i = 2, #KEYS do rows[i - 1] = redis.call('GET', KEYS[i]) end
return { clock, rows }`)

/**
 * KEYS: version, index by id, index by end, then the rows. ARGV: its deadline, then for each
 * row its id, the text that was seen or '', the one to put, '1' if it is listed, its end or ''.
 * A row is put only if it still has the text that was seen.
 */
export const PUT = script(`${ENTER}
if clock >= tonumber(ARGV[1]) then return 0 end
local put = 0
for i = 1, #KEYS - 3 do
  local id, seen, text, listed, ended = unpack(ARGV, 5 * i - 3, 5 * i + 1)
  if (redis.call('GET', KEYS[i + 3]) or '') == seen then
    redis.call('SET', KEYS[i + 3], text)
    redis.call(unpack(listed == '1' and { 'ZADD', KEYS[2], 0, id } or { 'ZREM', KEYS[2], id }))
    redis.call(unpack(ended ~= '' and { 'ZADD', KEYS[3], ended, id } or { 'ZREM', KEYS[3], id }))
    put = put + 1
  end
end
return put`)

/** KEYS: version, index by id. ARGV: from, count. Equal scores are in the order of their bytes. */
const BY_ID = script(`${ENTER}
return redis.call('ZRANGE', KEYS[2], ARGV[1], '+', 'BYLEX', 'LIMIT', 0, ARGV[2])`)

/** KEYS: version, index by end. ARGV: now or '', age, count. */
const BY_END = script(`${ENTER}
local now = ARGV[1] == '' and clock or ARGV[1]
local latest = string.format('%.0f', now - ARGV[2])
return redis.call('ZRANGE', KEYS[2], '-inf', latest, 'BYSCORE', 'LIMIT', 0, ARGV[3])`)

/** A row as it was at one moment, and its text, which tells whether it still is. */
export interface SeenLease {
  readonly jobId: string
  readonly row: LeaseRow | undefined
  readonly text: string
}

/** Rows of one moment. */
export interface SeenLeases {
  readonly leases: readonly SeenLease[]
  /** The time of the store. */
  readonly now: number
  /** The server's own clock, whatever the store takes for its time; both epoch milliseconds. */
  readonly clock: number
}

export class RedisLeaseStatements {
  readonly #space: RedisKeyspace
  readonly #now: (() => number) | undefined

  /** `now` is the store's clock in tests; `undefined` leaves the time to the server. */
  constructor(space: RedisKeyspace, now: (() => number) | undefined) {
    this.#space = space
    this.#now = now
  }

  async rows(jobIds: readonly string[]): Promise<SeenLeases> {
    const reply = await this.#space.run(ROWS, this.#keysOf(jobIds), [])
    const [clock, texts] = reply as unknown as [number, (string | null)[]]
    const leases = jobIds.map((jobId, i) => toSeen(jobId, texts[i] ?? ''))
    return { leases, now: this.#now?.() ?? clock, clock }
  }

  /** Puts each row whose text is as it was seen, and says how many; none from `deadline` on. */
  async put(changes: readonly { seen: SeenLease; row: LeaseRow }[], deadline: number) {
    const rows = this.#keysOf(changes.map(({ seen }) => seen.jobId))
    const keys = [this.#space.key('leases'), this.#space.key('ended'), ...rows]
    const args = changes.flatMap(({ seen, row }) => [seen.jobId, seen.text, ...stored(row)])
    return Number(await this.#space.run(PUT, keys, [deadline, ...args]))
  }

  /** Ids above `after` that are no tombstones, in the order of their bytes. */
  async idsAfter(after: string | undefined, count: number): Promise<readonly string[]> {
    const from = after === undefined ? '-' : `(${after}`
    const ids = await this.#space.run(BY_ID, [this.#space.key('leases')], [from, count])
    return ids as unknown as string[]
  }

  /** Ids of what ended at least `ageMs` ago, oldest first. */
  async idsEnded(ageMs: number, count: number): Promise<readonly string[]> {
    const args = [this.#now?.() ?? '', ageMs, count]
    const ids = await this.#space.run(BY_END, [this.#space.key('ended')], args)
    return ids as unknown as string[]
  }

  #keysOf(jobIds: readonly string[]): string[] {
    return jobIds.map((jobId) => this.#space.key('lease', jobId))
  }
}

function toSeen(jobId: string, text: string): SeenLease {
  return { jobId, text, row: text === '' ? undefined : parsed<LeaseRow>(text) }
}

/** A tombstone is what has ended without a time of its end: it is in neither index. */
function stored(row: LeaseRow): (string | number)[] {
  const endedAt = row.status === 'leased' ? undefined : row.endedAt
  const isListed = row.status === 'leased' || endedAt !== undefined
  return [JSON.stringify(row), isListed ? '1' : '', endedAt ?? '']
}
