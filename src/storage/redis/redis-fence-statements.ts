/** The scripts of the fence store, called with its keys. */

import { randomUUID } from 'node:crypto'
import type { Fence, JobKey, UnsettledOperation } from '../../guard/fence-store.ts'
import type { RedisArgument, RedisReply } from './redis-database.ts'
import {
  fenceArguments,
  memberOf,
  pairs,
  partsOf,
  type RecordChange,
  recordArguments,
  type Seen,
  textOf,
  toSeen,
  type ViewReply,
} from './redis-fence-records.ts'
import { APPLIED, COMMIT, PRUNE, READ, STATUS, UNSETTLED, VIEW } from './redis-fence-scripts.ts'
import type { RedisKeyspace } from './redis-schema.ts'
import { type RedisRead, RedisReplyError } from './redis-transaction.ts'

/** What one commit does to a job, all or nothing but for what Redis cannot undo. */
export interface Change {
  readonly job: JobKey
  readonly operationId: string | undefined
  readonly fence: Fence | undefined
  readonly record: RecordChange
  readonly reads: readonly RedisRead[]
  readonly calls: readonly (readonly RedisArgument[])[]
}

export type Committed =
  | { readonly status: 'done' | 'changed' }
  /** The call at `index` was answered with an error; those before it have taken place. */
  | { readonly status: 'failed'; readonly index: number; readonly reply: string }

export class RedisFenceStatements {
  readonly #space: RedisKeyspace
  readonly #now: (() => number) | undefined

  /** `now` is the store's clock in tests; `undefined` leaves the time to the server. */
  constructor(space: RedisKeyspace, now: (() => number) | undefined) {
    this.#space = space
    this.#now = now
  }

  async view(job: JobKey, operationId: string | undefined, census: boolean): Promise<Seen> {
    const args = [operationId ?? '', census ? '1' : '']
    const reply = await this.#space.run(VIEW, this.#keysOf(textOf(job)), args)
    return toSeen(reply as unknown as ViewReply, operationId, census, this.#now?.())
  }

  readonly read = async (
    command: readonly RedisArgument[],
  ): Promise<{ digest: string; reply: RedisReply }> => {
    const answer = await this.#space.run(READ, [], command)
    const [digest, reply] = answer as [string, RedisReply]
    if (digest === 'error') throw new RedisReplyError(String(command[0]), String(reply))
    return { digest, reply }
  }

  /** It takes place before `deadline` by the server's own clock, or not at all. */
  async commit(change: Change, { version }: Seen, deadline: number): Promise<Committed> {
    const { job, operationId = '', reads, calls } = change
    const args = [
      version,
      randomUUID(),
      deadline,
      this.#now?.() ?? '',
      operationId,
      memberOf(job, operationId),
      ...fenceArguments(change.fence),
      ...recordArguments(change.record),
      reads.length,
      ...reads.flatMap(({ digest, command }) => [digest, command.length, ...command]),
      calls.length,
      ...calls.flatMap((command) => [command.length, ...command]),
    ]
    const indexes = [this.#space.key('unsettled'), this.#space.key('applied')]
    const answer = await this.#space.run(COMMIT, [...this.#keysOf(textOf(job)), ...indexes], args)
    const [status, place, reply] = answer as [Committed['status'], number, string]
    return status === 'failed' ? { status, index: place - 1, reply } : { status }
  }

  /** A page of what is unsettled, lowest generation first; `[]` beyond its end. */
  async unsettled(from: number, count: number): Promise<(UnsettledOperation | undefined)[]> {
    const range = [from, from + count - 1]
    const page = await this.#space.run(UNSETTLED, [this.#space.key('unsettled')], range)
    const [clock, flat] = page as unknown as [number, string[]]
    const members = pairs(flat).map(([member, score]) => ({ ...partsOf(member), score }))
    if (members.length === 0) return []
    const keys = members.flatMap(({ text }) => this.#keysOf(text).slice(1, 3))
    const ids = members.map(({ operationId }) => operationId)
    const found = await this.#space.run(STATUS, keys, ids)
    const now = this.#now?.() ?? clock
    return members.map(({ job, operationId, score }, i) => {
      const [inFlight, unknown] = (found as unknown as [string | null, number][])[i] ?? [null, 0]
      // Settled since the index was read.
      if (inFlight === null && unknown === 0) return undefined
      const overdue = inFlight !== null && Number.parseInt(inFlight, 10) <= now
      const status = inFlight === null ? 'unknown' : overdue ? 'overdue' : 'in_flight'
      return { ...job, operationId, generation: Number(score), status }
    })
  }

  /** Deletes what is due of a page of applied records, oldest first. */
  async prune(olderThanMs: number, sealedOnly: boolean, offset: number, count: number) {
    const applied = this.#space.key('applied')
    const bounds = [this.#now?.() ?? '', olderThanMs, offset, count]
    const page = await this.#space.run(APPLIED, [applied], bounds)
    const [latest, members] = page as unknown as [string, string[]]
    if (members.length === 0) return { looked: 0, pruned: 0 }
    const known = members.map((member) => ({ member, ...partsOf(member) }))
    const keys = known.flatMap(({ text }) => [
      this.#space.key('fence', text),
      this.#space.key('applied', text),
    ])
    const args = known.flatMap(({ member, operationId }) => [member, operationId])
    const head = [latest, sealedOnly ? '1' : '']
    const pruned = await this.#space.run(PRUNE, [applied, ...keys], [...head, ...args])
    return { looked: members.length, pruned: Number(pruned) }
  }

  #keysOf(text: string): string[] {
    return ['fence', 'in-flight', 'unknown', 'applied'].map((kind) => this.#space.key(kind, text))
  }
}
