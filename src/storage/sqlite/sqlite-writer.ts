/** Runs work in IMMEDIATE transactions of one handle, many calls to a commit. */

import { performance } from 'node:perf_hooks'
import { StoreUnavailableError } from '../../errors.ts'
import { publishFault } from '../../events.ts'
import { checkDuration } from '../../options.ts'
import { GroupCommit, type Round, type Ticket, type TicketQueue } from '../group-commit.ts'
import {
  isBusy,
  isConstraint,
  isOccupied,
  type SqliteDatabase,
  type SqliteStoreOptions,
  unavailable,
} from './sqlite-database.ts'
import { SqliteTransaction, TransactionEnded } from './sqlite-transaction.ts'

/** An earlier run of this work's effect has cost the whole transaction, with this error. */
export interface Spoiled {
  readonly error: unknown
}

/**
 * One call. It may run again after a rollback; once `spoiled`, it must leave its effect out.
 * @throws {@link TransactionEnded} where its effect ended the transaction; any other error undoes
 * the group and rejects all of it
 */
export type SqliteWork = (spoiled: Spoiled | undefined) => unknown

interface Member {
  readonly ticket: Ticket<SqliteWork>
  value?: unknown
}

// Bounds of a group: a call waits for at most so many others, or so many milliseconds of them.
const MAX_GROUP = 256
const MAX_GROUP_MS = 10
const SYNC_RETRY_MS = 2

export class SqliteWriter {
  readonly #db: SqliteDatabase
  readonly #transaction: SqliteTransaction
  readonly #queue: GroupCommit<SqliteWork>
  readonly #maxGroup: number
  readonly #busyTimeoutMs: number
  readonly #spoiled = new WeakMap<SqliteWork, Spoiled>()
  /** A commit has failed for one of them: each runs in a transaction of its own. */
  readonly #alone = new WeakSet<SqliteWork>()
  #running = false
  #closed = false

  constructor(db: SqliteDatabase, options: SqliteStoreOptions) {
    this.#db = db
    this.#transaction = new SqliteTransaction(db)
    this.#maxGroup = (options.groupCommit ?? true) ? MAX_GROUP : 1
    this.#busyTimeoutMs = checkDuration('busyTimeoutMs', options.busyTimeoutMs ?? 5000)
    const run = (queue: TicketQueue<SqliteWork>) => this.#runGroup(queue)
    this.#queue = new GroupCommit({ maxWaitMs: this.#busyTimeoutMs, run })
  }

  /** Whether the handle is inside a transaction of its user's. */
  get insideTransaction(): boolean {
    return this.#db.open && this.#transaction.isForeign
  }

  /** Resolves after the commit; the work waits while the handle or the database is busy. */
  submit<T>(work: (spoiled: Spoiled | undefined) => T): Promise<T> {
    try {
      this.#assertNotNested()
      return this.#queue.submit<T>(work)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** The same on the calling stack: blocks the thread while the database is busy. */
  submitSync<T>(work: (spoiled: Spoiled | undefined) => T): T {
    this.#assertNotNested()
    if (this.#closed) throw new StoreUnavailableError('the store is closed')
    if (this.insideTransaction) {
      throw new TypeError('the handle is inside a transaction: use within(tx, …) there')
    }
    const answer = this.#runAlone(work)
    if ('error' in answer) throw answer.error
    return answer.value as T
  }

  /**
   * Reads at once, without the lock. What the handle's transaction has not committed may never be,
   * and a locked database will be free again: then the read waits for its turn like a write.
   */
  async read<T>(read: () => T): Promise<T> {
    if (this.#closed) throw new StoreUnavailableError('the store is closed')
    if (this.#db.inTransaction) return this.submit(read)
    try {
      return read()
    } catch (error) {
      if (isBusy(error) || isOccupied(error)) return this.submit(read)
      throw unavailable(error)
    }
  }

  /** Withdraws what is queued and refuses what comes; the handle stays open. */
  close(): void {
    this.#closed = true
    this.#queue.close()
  }

  #assertNotNested(): void {
    if (!this.#running) return
    throw new TypeError('called inside the effect of a write: use within(tx, …) there')
  }

  #runAlone(work: SqliteWork): { readonly value: unknown } | { readonly error: unknown } {
    const giveUpAt = performance.now() + this.#busyTimeoutMs
    const pause = new Int32Array(new SharedArrayBuffer(4))
    let answer: { value: unknown } | { error: unknown } | undefined
    const ticket: Ticket<SqliteWork> = {
      work,
      resolve: (value) => {
        answer = { value }
      },
      reject: (error) => {
        answer = { error }
      },
      expiresAt: giveUpAt,
    }
    const waiting = [ticket]
    const queue = { take: () => waiting.shift(), putBack: () => waiting.push(ticket) }
    while (answer === undefined) {
      const round = this.#runGroup(queue)
      if (round.status === 'ran') continue
      // Nothing but another connection's lock goes away while this thread waits.
      if (!isBusy(round.reason) || performance.now() >= giveUpAt) {
        return { error: unavailable(round.reason) }
      }
      Atomics.wait(pause, 0, 0, SYNC_RETRY_MS)
    }
    return answer
  }

  /** One transaction: as many calls as fit, then the commit, and only then their answers. */
  #runGroup(queue: TicketQueue<SqliteWork>): Round {
    if (this.insideTransaction) {
      return { status: 'busy', reason: new Error('the handle is inside a transaction of its user') }
    }
    try {
      this.#transaction.begin()
    } catch (error) {
      const waits = isBusy(error) || isOccupied(error)
      return waits ? { status: 'busy', reason: error } : rejectAll(queue, error)
    }
    const members: Member[] = []
    this.#running = true
    try {
      this.#runMembers(queue, members)
    } catch (error) {
      return error instanceof TransactionEnded
        ? this.#recover(queue, members, error)
        : this.#giveUp(members, error)
    } finally {
      this.#running = false
    }
    try {
      this.#transaction.commit()
    } catch (error) {
      return this.#commitFailed(queue, members, error)
    }
    for (const { ticket, value } of members) ticket.resolve(value)
    return { status: 'ran' }
  }

  #runMembers(queue: TicketQueue<SqliteWork>, members: Member[]): void {
    const startedAt = performance.now()
    do {
      const ticket = queue.take()
      if (ticket === undefined) return
      // From the second on there is somebody whose answer hangs on what the others do.
      if (members.length === 1) this.#transaction.mark()
      const member: Member = { ticket }
      members.push(member)
      member.value = ticket.work(this.#spoiled.get(ticket.work))
      // Those that must run alone were put back at the head of the queue: they come first.
      if (this.#alone.has(ticket.work)) return
    } while (members.length < this.#maxGroup && performance.now() - startedAt < MAX_GROUP_MS)
  }

  /**
   * The last member's effect has ended the transaction. If by a commit, those before it are
   * durable, and so is what it did itself, its record included; if by a rollback, nothing is, and
   * those before it run again. It runs again either way, without its effect: to advance the fence.
   */
  #recover(queue: TicketQueue<SqliteWork>, members: Member[], ended: TransactionEnded): Round {
    // Nothing but the effect of a member ends a transaction.
    const { ticket } = members.at(-1) as Member
    let committed: boolean
    try {
      this.#transaction.rollback()
      committed = members.length > 1 && this.#transaction.wasCommitted()
    } catch (error) {
      return this.#giveUp(members, error)
    }
    publishFault({ fault: 'transaction_ended_by_callback', error: ended })
    this.#spoiled.set(ticket.work, { error: ended.cause ?? new TypeError(ended.message) })
    if (committed) for (const each of members.slice(0, -1)) each.ticket.resolve(each.value)
    queue.putBack(committed ? [ticket] : members.map((each) => each.ticket))
    return { status: 'ran' }
  }

  #commitFailed(queue: TicketQueue<SqliteWork>, members: Member[], error: unknown): Round {
    const again = isBusy(error) || isConstraint(error)
    const [first] = members
    if (!again || first === undefined) return this.#giveUp(members, error)
    try {
      this.#transaction.rollback()
    } catch (failure) {
      return this.#giveUp(members, failure)
    }
    if (isBusy(error)) {
      queue.putBack(members.map((member) => member.ticket))
      return { status: 'busy', reason: error }
    }
    // What an effect left behind (a deferred foreign key) must not cost the others their write.
    if (members.length > 1) for (const { ticket } of members) this.#alone.add(ticket.work)
    else if (this.#spoiled.has(first.ticket.work)) return this.#giveUp(members, error)
    else this.#spoiled.set(first.ticket.work, { error })
    queue.putBack(members.map((member) => member.ticket))
    return { status: 'ran' }
  }

  /** Whether it was committed is not known to the callers: that is what the error says. */
  #giveUp(members: Member[], error: unknown): Round {
    try {
      this.#transaction.rollback()
    } catch (failure) {
      publishFault({ fault: 'store_unavailable', error: failure })
    }
    for (const { ticket } of members) ticket.reject(unavailable(error))
    return { status: 'ran' }
  }
}

function rejectAll(queue: TicketQueue<SqliteWork>, error: unknown): Round {
  for (let ticket = queue.take(); ticket !== undefined; ticket = queue.take()) {
    ticket.reject(unavailable(error))
  }
  return { status: 'ran' }
}
