import { performance } from 'node:perf_hooks'
import { WriteRefusedError } from '../../errors.ts'
import type {
  Done,
  Encoded,
  Fence,
  FenceStore,
  JobKey,
  JobView,
  PruneRequest,
  Step,
  Unit,
  UnsettledOperation,
  UnsettledQuery,
} from '../../guard/fence-store.ts'
import type { RedisClient, RedisStoreOptions } from './redis-database.ts'
import type { Seen } from './redis-fence-records.ts'
import { type Change, type Committed, RedisFenceStatements } from './redis-fence-statements.ts'
import { RedisKeyspace } from './redis-schema.ts'
import { RedisRecorder, RedisReplyError, type RedisTransaction } from './redis-transaction.ts'
import { JobChanged, RedisUnits } from './redis-units.ts'

const PAGE = 500

/**
 * The fence in the Redis that the effects go to. A unit reads the job in one script, decides, lets
 * the callback queue its commands, and commits check, fence, record and commands in a second one,
 * which does nothing if the job, or anything that the callback read, is not as it was; then the
 * unit starts over. No lock is held, so that none is left behind.
 *
 * What Redis cannot promise is in docs/engines/redis.md: read it first.
 * @throws TypeError for a client of another driver, and for bad options
 */
export class RedisFenceStore implements FenceStore<RedisTransaction, 'async'> {
  readonly mode = 'async'
  readonly #space: RedisKeyspace
  readonly #statements: RedisFenceStatements
  readonly #units: RedisUnits

  constructor(client: RedisClient, options: RedisStoreOptions = {}) {
    this.#space = new RedisKeyspace(client, 'fence', options)
    this.#statements = new RedisFenceStatements(this.#space, options.now)
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

  transact<A, R>(unit: Unit<RedisTransaction, 'async', A, R>): Promise<Done<A, R>> {
    return this.#units.run(unit.job, () => this.#attempt(unit))
  }

  /** Redis has no transaction that could be joined: commands of a MULTI are not answered. */
  async within<A, R>(): Promise<Done<A, R>> {
    this.#space.assertOpen()
    throw new TypeError(
      'Redis has no transaction that a guard could join: queue your commands in guard.write',
    )
  }

  async view(job: JobKey, operationId?: string): Promise<JobView> {
    return (await this.#statements.view(job, operationId, true)).view
  }

  async list({ scope, jobId, limit = 100 }: UnsettledQuery): Promise<UnsettledOperation[]> {
    const found: UnsettledOperation[] = []
    for (let from = 0; ; from += PAGE) {
      const page = await this.#statements.unsettled(from, PAGE)
      if (page.length === 0) return found
      for (const one of page) {
        if (one === undefined || one.scope !== (scope ?? one.scope)) continue
        if (one.jobId === (jobId ?? one.jobId)) found.push(one)
        if (found.length === limit) return found
      }
    }
  }

  async prune({ olderThanMs, limit = 1000, sealedOnly = false }: PruneRequest) {
    let pruned = 0
    for (let offset = 0; pruned < limit; ) {
      const count = Math.min(PAGE, limit - pruned)
      const batch = await this.#statements.prune(olderThanMs, sealedOnly, offset, count)
      if (batch.looked === 0) break
      pruned += batch.pruned
      offset += batch.looked - batch.pruned
    }
    return { pruned }
  }

  /** Ends the store's own connection once what is under way has its answer. */
  close(): Promise<void> {
    return this.#space.close()
  }

  async #attempt<A, R>(unit: Unit<RedisTransaction, 'async', A, R>): Promise<Done<A, R>> {
    const { job, operationId } = unit
    const seen = await this.#statements.view(job, operationId, unit.census ?? false)
    const commit = this.#committer(job, seen)
    const step = unit.step(seen.view)
    const { answer, fence, action } = step
    if (action.kind === 'apply') {
      const known = (fence ?? seen.view.fence)?.generation
      return { answer, effect: await this.#apply(unit, fence, action, commit, known) }
    }
    if (fence !== undefined || action.kind !== 'none') {
      await commit({ operationId, fence, record: action, reads: [], calls: [] })
    }
    return { answer, effect: undefined }
  }

  /** Commits to the job as it was seen. @throws JobChanged */
  #committer(job: JobKey, seen: Seen): Commit {
    const seenAt = performance.now()
    return async (change) => {
      const deadline = this.#space.deadline(seen.clock, seenAt)
      const committed = await this.#statements.commit({ job, ...change }, seen, deadline)
      if (committed.status === 'changed') throw new JobChanged()
      return committed
    }
  }

  async #apply<A, R>(
    unit: Unit<RedisTransaction, 'async', A, R>,
    fence: Fence | undefined,
    { generation, fingerprint, unrecorded }: Extract<Step<A>['action'], { kind: 'apply' }>,
    commit: Commit,
    highestGeneration: number | undefined,
  ): Promise<Effect<R>> {
    const tx = new RedisRecorder(this.#space.hashTag, this.#statements.read)
    const run = await runEffect(unit, tx)
    const { reads, calls } = tx
    const operationId = unrecorded ? undefined : unit.operationId
    if (run.status === 'threw') {
      // What it threw counts only if what it read still holds.
      if (fence !== undefined || reads.length > 0) {
        await commit({ operationId, fence, record: NOTHING, reads, calls: [] })
      }
      return run
    }
    const operation = { status: 'applied', generation, fingerprint, result: run.text } as const
    const record = { kind: 'apply', operation } as const
    const committed = await commit({ operationId, fence, record, reads, calls })
    if (committed.status !== 'failed') return { status: 'returned', value: run.value }
    const cause = new RedisReplyError(String(calls[committed.index]?.[0]), committed.reply)
    if (committed.index === 0) return { status: 'threw', error: cause }
    const { jobId } = unit.job
    const known = { jobId, generation, operationId: unit.operationId, highestGeneration }
    const error = new WriteRefusedError('outcome_unknown', known, { cause })
    return { status: 'threw', error }
  }
}

type Commit = (change: Omit<Change, 'job'>) => Promise<Committed>
type Effect<R> = NonNullable<Done<unknown, R>['effect']>

const NOTHING = { kind: 'none' } as const

async function runEffect<A, R>(
  { effect }: Unit<RedisTransaction, 'async', A, R>,
  tx: RedisRecorder,
): Promise<
  ({ readonly status: 'returned' } & Encoded<R>) | { readonly status: 'threw'; error: unknown }
> {
  if (effect === undefined) throw new Error('the unit asks for an effect that it does not have')
  try {
    return { status: 'returned', ...(await effect(tx)) }
  } catch (error) {
    return { status: 'threw', error }
  } finally {
    tx.end()
  }
}
