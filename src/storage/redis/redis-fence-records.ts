/** Fences and operations as Redis keeps them, and in the port's words. */

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
} from '../../guard/fence-store.ts'
import type { RedisArgument } from './redis-database.ts'
import { parsed } from './redis-schema.ts'

/** A job as it was at one moment, and what tells whether it still is. */
export interface Seen {
  readonly view: JobView
  readonly version: string
  /** The server's own clock, epoch milliseconds, whatever the store takes for its time. */
  readonly clock: number
}

/** What becomes of the record of an operation. */
export type RecordChange =
  | { readonly kind: 'none' | 'delete' }
  | { readonly kind: 'put'; readonly operation: OperationChange }
  /** Run the commands of the effect, and record it where there is an operation. */
  | { readonly kind: 'apply'; readonly operation: Extract<OperationChange, { status: 'applied' }> }

/** The record of an operation; where it is kept says its status. */
interface Stored {
  readonly generation: number
  readonly fingerprint?: string | undefined
  readonly attemptId?: string | undefined
  readonly result?: string | undefined
}

export type ViewReply = readonly [
  clock: number,
  fence: readonly (string | null)[],
  inFlight: readonly string[],
  own: readonly (string | null)[],
  unknown: readonly string[],
]

/** A job in a key: JSON, so that no two pairs of scope and id are spelled alike. */
export function textOf({ scope, jobId }: JobKey): string {
  return JSON.stringify([scope, jobId])
}

/** A member of an index: ids have no control characters, so the line feed parts it. */
export function memberOf(job: JobKey, operationId: string): string {
  return `${textOf(job)}\n${operationId}`
}

/** The job of a member of an index, as its keys have it and as it is, and the operation. */
export function partsOf(member: string): { text: string; job: JobKey; operationId: string } {
  const [text = '', operationId = ''] = member.split('\n')
  const [scope, jobId] = parsed<[string, string]>(text)
  return { text, job: { scope, jobId }, operationId }
}

/** Generation, holder, leaseId, sealed; all empty where the fence stays. */
export function fenceArguments(fence: Fence | undefined): RedisArgument[] {
  if (fence === undefined) return ['', '', '', '']
  const { generation, holder, sealed } = fence
  return [generation, holder.kind, holder.kind === 'lease' ? holder.leaseId : '', sealed ? 1 : 0]
}

/** Kind, status, generation, deadline, the record, and the record that it begins as. */
export function recordArguments(record: RecordChange): RedisArgument[] {
  if (!('operation' in record)) return [record.kind, '', '', '', '', '']
  const { operation } = record
  const { status, deadlineMs, ...stored } = { deadlineMs: '', ...operation }
  const { generation, fingerprint } = operation
  // What is left if only a part of the commands has taken place: an attempt like any other.
  const begun: Stored = { generation, fingerprint, attemptId: randomUUID() }
  const texts = [stored, begun].map((each) => JSON.stringify(each))
  return [record.kind, status, generation, deadlineMs, ...texts]
}

export function toSeen(
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

/** A flat list of keys and values in pairs. */
export function pairs(flat: readonly string[]): [string, string][] {
  return flat.flatMap((value, i) => (i % 2 === 0 ? [[value, flat[i + 1] ?? '']] : [])) as [
    string,
    string,
  ][]
}
