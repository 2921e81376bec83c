import { performance } from 'node:perf_hooks'
import { checkLeasePrune, checkLeaseQuery } from '../../lease/lease-arguments.ts'
import { type LeaseRow, recordOf } from '../../lease/lease-rules.ts'
import type { LeasePruneRequest, LeaseQuery, LeaseRecord } from '../../lease/lease-store.ts'
import { checkId } from '../../token.ts'
import { type LeaseRule, RuledLeaseStore } from '../ruled-lease-store.ts'
import type { RedisClient, RedisStoreOptions } from './redis-database.ts'
import { RedisLeaseStatements, type SeenLease } from './redis-lease-statements.ts'
import { RedisKeyspace } from './redis-schema.ts'
import { JobChanged, RedisUnits } from './redis-units.ts'

const PAGE = 500

/**
 * Leases in Redis. A verb reads the row and the server's time in one script, asks the rule, and
 * puts the row in a second one, which does nothing if the row has changed since, or if the lease
 * would be over already; then the verb starts over.
 *
 * What Redis cannot promise is in docs/engines/redis.md: read it first.
 * @throws TypeError for a client of another driver, and for bad options
 */
export class RedisLeaseStore extends RuledLeaseStore {
  readonly #space: RedisKeyspace
  readonly #statements: RedisLeaseStatements
  readonly #units: RedisUnits

  constructor(client: RedisClient, options: RedisStoreOptions = {}) {
    super()
    this.#space = new RedisKeyspace(client, 'lease', options)
    this.#statements = new RedisLeaseStatements(this.#space, options.now)
    this.#units = new RedisUnits(this.#space.timeoutMs)
  }

  /**
   * Marks the prefix as set up; safe to repeat, and from several processes at once. Call it where
   * you set up, not at each start: a store that finds no mark refuses all that comes, and this is
   * how a flushed or empty server is told from a new one.
   * @throws StoreUnavailableError where the keys have another version
   */
  createSchema(): Promise<void> {
    return this.#space.setUp()
  }

  async get(jobId: string): Promise<LeaseRecord | undefined> {
    const { leases, now } = await this.#statements.rows([checkId('jobId', jobId)])
    const row = leases[0]?.row
    return row && recordOf(row, now)
  }

  async list(query?: LeaseQuery): Promise<LeaseRecord[]> {
    const checked = checkLeaseQuery(query)
    const found: LeaseRecord[] = []
    for (let { after } = checked; ; ) {
      const ids = await this.#statements.idsAfter(after, PAGE)
      if (ids.length === 0) return found
      const { leases, now } = await this.#statements.rows(ids)
      for (const { row } of leases) {
        if (row !== undefined && isAskedFor(row, now, checked)) found.push(recordOf(row, now))
        if (found.length === checked.limit) return found
      }
      after = ids.at(-1)
    }
  }

  async prune(request: LeasePruneRequest): Promise<{ readonly pruned: number }> {
    const { olderThanMs, limit } = checkLeasePrune(request)
    let pruned = 0
    while (pruned < limit) {
      const ids = await this.#statements.idsEnded(olderThanMs, Math.min(PAGE, limit - pruned))
      if (ids.length === 0) break
      const { leases } = await this.#statements.rows(ids)
      const put = await this.#statements.put(leases.flatMap(buried), Number.MAX_SAFE_INTEGER)
      if (put === 0) break
      pruned += put
    }
    return { pruned }
  }

  /** Ends the store's own connection once what is under way has its answer. */
  close(): Promise<void> {
    return this.#space.close()
  }

  protected change<A>(jobId: string, rule: LeaseRule<A>): Promise<A> {
    return this.#units.run({ scope: '', jobId }, async () => {
      const { leases, now, clock } = await this.#statements.rows([jobId])
      const seenAt = performance.now()
      const [seen] = leases
      const { answer, put: row } = rule(seen?.row, now)
      if (seen === undefined || row === undefined) return answer
      // A lease that is over by the time that it is put must not be given out.
      const over = row.status === 'leased' ? clock + row.ttlMs : Number.POSITIVE_INFINITY
      const deadline = Math.min(this.#space.deadline(clock, seenAt), over)
      if ((await this.#statements.put([{ seen, row }], deadline)) === 0) throw new JobChanged()
      return answer
    })
  }
}

function isAskedFor(row: LeaseRow, now: number, query: LeaseQuery): boolean {
  const { status, owner, expired } = query
  if (status !== undefined && row.status !== status) return false
  if (owner !== undefined && row.owner !== owner) return false
  return expired === undefined || recordOf(row, now).expired === expired
}

/** The tombstone of a lease that has ended: generation and completion stay. */
function buried(seen: SeenLease): { seen: SeenLease; row: LeaseRow }[] {
  const { row } = seen
  if (row === undefined || row.status === 'leased') return []
  return [{ seen, row: { ...row, owner: undefined, leaseId: undefined, endedAt: undefined } }]
}
