/** The scripts of the fence store, called with its keys, and their replies in the port's words. */

import { randomUUID } from 'node:crypto'
import type {
  CensusRow,
  Fence,
  Holder,
  JobKey,
  JobView,
  Operation,
  OperationChange,
  Pending,
  UnsettledOperation,
} from '../../guard/fence-store.ts'
import type { RedisArgument, RedisReply } from './redis-database.ts'
import { APPLIED, COMMIT, PRUNE, READ, STATUS, UNSETTLED, VIEW } from './redis-fence-scripts.ts'
import { parsed, type RedisKeyspace } from './redis-schema.ts'
import { type RedisRead, RedisReplyError } from './redis-transaction.ts'

/** A job as it was at one moment, and what tells whether it still is. */
export interface Seen {
  readonly view: JobView
  readonly version: string
  /** The server's own clock, epoch milliseconds, whatever the store takes for its time. */
  readonly clock: number
}

/** What one commit does to a job, all or nothing but for what Redis cannot undo. */
export interface Change {
  readonly job: JobKey
  readonly operationId: string | undefined
  readonly fence: Fence | undefined
  readonly record:
    | { readonly kind: 'none' | 'delete' }
    | { readonly kind: 'put'; readonly operation: OperationChange }
    /** Run the calls, and record them where there is an operation. */
    | {
        readonly kind: 'apply'
        readonly operation: Extract<OperationChange, { status: 'applied' }>
      }
  readonly reads: readonly RedisRead[]
  readonly calls: readonly (readonly RedisArgument[])[]
}

export type Committed =
  | { readonly status: 'done' | 'changed' }
  /** The call at `index` was answered with an error; those before it have taken place. */
  | { readonly status: 'failed'; readonly index: number; readonly reply: string }

interface Stored {
  readonly generation: number
  readonly fingerprint?: string | undefined
  readonly attemptId?: string | undefined
  readonly result?: string | undefined
}

type ViewReply = readonly [
  clock: number,
  fence: readonly (string | null)[],
  inFlight: readonly string[],
  own: readonly (string | null)[],
  unknown: readonly string[],
]

export type RedisFenceStatements = ReturnType<typeof fenceStatements>

/** `now` is the store's clock in tests; `undefined` leaves the time to the server. */
export function fenceStatements(space: RedisKeyspace, now: (() => number) | undefined) {
  const unsettled = space.key('unsettled')
  const applied = space.key('applied')
  const keysOf = (job: string) =>
    ['fence', 'in-flight', 'unknown', 'applied'].map((kind) => space.key(kind, job))

  return {
    async view(job: JobKey, operationId: string | undefined, census: boolean): Promise<Seen> {
      const args = [operationId ?? '', census ? '1' : '']
      const reply = (await space.run(VIEW, keysOf(textOf(job)), args)) as unknown as ViewReply
      return toSeen(reply, operationId, census, now?.())
    },

    async read(command: readonly RedisArgument[]): Promise<{ digest: string; reply: RedisReply }> {
      const [digest, reply = null] = (await space.run(READ, [], command)) as [string, RedisReply]
      if (digest === 'error') throw new RedisReplyError(String(command[0]), String(reply))
      return { digest, reply }
    },

    /** `latest` is the last moment, by the server's clock, at which it may take place. */
    async commit(change: Change, { version }: Seen, latest: number): Promise<Committed> {
      const { job, operationId = '' } = change
      const args = [
        version,
        randomUUID(),
        latest,
        now?.() ?? '',
        operationId,
        `${textOf(job)}\n${operationId}`,
        ...fenceArguments(change.fence),
        ...recordArguments(change.record),
        change.reads.length,
        ...change.reads.flatMap(({ digest, command }) => [digest, command.length, ...command]),
        change.calls.length,
        ...change.calls.flatMap((command) => [command.length, ...command]),
      ]
      const keys = [...keysOf(textOf(job)), unsettled, applied]
      const reply = (await space.run(COMMIT, keys, args)) as [Committed['status'], number, string]
      const [status, place, text] = reply
      return status === 'failed' ? { status, index: place - 1, reply: text } : { status }
    },

    /** Part of the index of unsettled operations, lowest generation first; `[]` beyond its end. */
    async unsettled(from: number, count: number): Promise<(UnsettledOperation | undefined)[]> {
      const page = await space.run(UNSETTLED, [unsettled], [from, from + count - 1])
      const [clock, flat] = page as unknown as [number, string[]]
      const members = pairs(flat).map(([member, score]) => ({ ...parts(member), score }))
      if (members.length === 0) return []
      const keys = members.flatMap(({ job }) => keysOf(job).slice(1, 3))
      const found = await space.run(
        STATUS,
        keys,
        members.map(({ operationId }) => operationId),
      )
      const statuses = found as unknown as [inFlight: string | null, unknown: number][]
      const at = now?.() ?? clock
      return members.map(({ job, operationId, score }, i) => {
        const [inFlight, unknown] = statuses[i] ?? [null, 0]
        // Settled since the index was read.
        if (inFlight === null && unknown === 0) return undefined
        const overdue = inFlight !== null && Number.parseInt(inFlight, 10) <= at
        const status = inFlight === null ? 'unknown' : overdue ? 'overdue' : 'in_flight'
        return { ...jobOf(job), operationId, generation: Number(score), status }
      })
    },

    /** Deletes those that are due among `count` applied records, oldest first, from `offset` on. */
    async prune(olderThanMs: number, sealedOnly: boolean, offset: number, count: number) {
      const page = await space.run(APPLIED, [applied], [now?.() ?? '', olderThanMs, offset, count])
      const [latest, members] = page as unknown as [string, string[]]
      if (members.length === 0) return { looked: 0, pruned: 0 }
      const known = members.map((member) => ({ member, ...parts(member) }))
      const keys = known.flatMap(({ job }) => [space.key('fence', job), space.key('applied', job)])
      const args = known.flatMap(({ member, operationId }) => [member, operationId])
      const head = [latest, sealedOnly ? '1' : '']
      const pruned = Number(await space.run(PRUNE, [applied, ...keys], [...head, ...args]))
      return { looked: members.length, pruned }
    },
  }
}

/** A job in a key: JSON, so that no two pairs of scope and id are spelled alike. */
export function textOf({ scope, jobId }: JobKey): string {
  return JSON.stringify([scope, jobId])
}

function jobOf(text: string): JobKey {
  const [scope, jobId] = parsed<[string, string]>(text)
  return { scope, jobId }
}

/** A member of an index: ids have no control characters, so the line feed parts it. */
function parts(member: string): { job: string; operationId: string } {
  const [job = '', operationId = ''] = member.split('\n')
  return { job, operationId }
}

function fenceArguments(fence: Fence | undefined): RedisArgument[] {
  if (fence === undefined) return ['', '', '', '']
  const { generation, holder, sealed } = fence
  return [generation, holder.kind, holder.kind === 'lease' ? holder.leaseId : '', sealed ? 1 : 0]
}

function recordArguments(record: Change['record']): RedisArgument[] {
  if (!('operation' in record)) return [record.kind, '', '', '', '', '']
  const { operation } = record
  const { status, deadlineMs, ...stored } = { deadlineMs: '', ...operation }
  const { generation, fingerprint } = operation
  // What is left if only a part of the commands has taken place: an attempt like any other.
  const begun: Stored = { generation, fingerprint, attemptId: randomUUID() }
  const texts = [stored, begun].map((each) => JSON.stringify(each))
  return [record.kind, status, generation, deadlineMs, ...texts]
}

function toSeen(
  [clock, row, inFlight, own, unknown]: ViewReply,
  operationId: string | undefined,
  census: boolean,
  now = clock,
): Seen {
  const running = pairs(inFlight).map(([id, text]) => ({ id, ...toInFlight(text, now) }))
  const ended = unknown.map((text) => parsed<Stored>(text).generation)
  const view: JobView = {
    fence: toFence(row),
    operation: running.find(({ id }) => id === operationId)?.operation ?? toOperation(own),
    pending: pendingOf(running.filter(({ id }) => id !== operationId)),
    census: census ? censusOf(running, ended) : undefined,
  }
  return { view, version: row[4] ?? '', clock }
}

type InFlight = Extract<Operation, { status: 'in_flight' }>

function toInFlight(text: string, now: number): { operation: InFlight } {
  const space = text.indexOf(' ')
  const remainingMs = Math.max(0, Number(text.slice(0, space)) - now)
  const { generation, fingerprint, attemptId = '' } = parsed<Stored>(text.slice(space))
  const overdue = remainingMs === 0
  const status = 'in_flight'
  return { operation: { status, generation, fingerprint, attemptId, overdue, remainingMs } }
}

function toOperation([unknown, applied]: readonly (string | null)[]): Operation | undefined {
  const text = unknown ?? applied
  if (text === undefined || text === null) return undefined
  const { generation, fingerprint, attemptId = '', result } = parsed<Stored>(text)
  return text === unknown
    ? { status: 'unknown', generation, fingerprint, attemptId }
    : { status: 'applied', generation, fingerprint, result }
}

function toFence([generation, kind, leaseId, sealed]: readonly (string | null)[]) {
  if (generation === null || generation === undefined) return undefined
  const holder = kind === 'lease' ? { kind, leaseId } : { kind }
  return { generation: Number(generation), holder: holder as Holder, sealed: sealed === '1' }
}

function pendingOf(running: readonly { operation: InFlight }[]): JobView['pending'] {
  const pending: { inFlight?: Pending; overdue?: Pending } = {}
  for (const { operation } of running) {
    const { generation, remainingMs, overdue } = operation
    const kind = overdue ? 'overdue' : 'inFlight'
    const lowest = pending[kind]?.generation ?? Number.POSITIVE_INFINITY
    if (generation < lowest) pending[kind] = { generation, remainingMs }
  }
  return pending
}

function censusOf(
  running: readonly { operation: InFlight }[],
  ended: readonly number[],
): CensusRow[] {
  const rows = new Map<string, CensusRow>()
  const add = (status: CensusRow['status'], generation: number) => {
    const key = `${status} ${generation}`
    rows.set(key, { status, generation, count: (rows.get(key)?.count ?? 0) + 1 })
  }
  for (const { operation } of running) {
    add(operation.overdue ? 'overdue' : 'in_flight', operation.generation)
  }
  for (const generation of ended) add('unknown', generation)
  return [...rows.values()]
}

function pairs(flat: readonly string[]): [string, string][] {
  return flat.flatMap((value, i) => (i % 2 === 0 ? [[value, flat[i + 1] ?? '']] : [])) as [
    string,
    string,
  ][]
}
