/**
 * The port of a fence store: who remembers, at the destination.
 *
 * An engine knows how to lock one job, read it, run a pure `step` on what it read, put what the
 * step says, and commit. It never restates a rule: write, reserve, settle, advance, seal, reopen
 * and resolve are all units of this one shape.
 */

/** Engines whose transactions are synchronous (SQLite), and all the others. */
export type StoreMode = 'sync' | 'async'

/** `T` at once from a synchronous engine, a promise of it from an asynchronous one. */
export type Answer<Mode extends StoreMode, T> = Mode extends 'sync' ? T : Promise<T>

/** What a callback may return: a synchronous engine cannot wait for a promise. */
export type Returned<Mode extends StoreMode, T> = Mode extends 'sync' ? T : T | Promise<T>

/** A job within its tenant or trust domain: two columns, never one glued text. */
export interface JobKey {
  readonly scope: string
  readonly jobId: string
}

/** Who holds the fence at its generation. */
export type Holder =
  /** A holder whose token bears no leaseId. */
  | { readonly kind: 'none' }
  /** Set by an operator; the first token of this generation binds it. */
  | { readonly kind: 'unbound' }
  | { readonly kind: 'lease'; readonly leaseId: string }

/** What the destination remembers of a job. A fence never falls (I1). */
export interface Fence {
  readonly generation: number
  readonly holder: Holder
  readonly sealed: boolean
}

interface OperationKnown {
  /** The generation of the attempt that began it, or that applied it. */
  readonly generation: number
  readonly fingerprint: string | undefined
}

/** The record of one operation. Only an attempt that has not been applied has an attempt id. */
export type Operation =
  | (OperationKnown & {
      readonly status: 'in_flight'
      readonly attemptId: string
      /** Past its deadline by the store's time: it may still take place. */
      readonly overdue: boolean
      /** Until the deadline, in milliseconds; 0 where overdue. */
      readonly remainingMs: number
    })
  | (OperationKnown & { readonly status: 'unknown'; readonly attemptId: string })
  | (OperationKnown & { readonly status: 'applied'; readonly result: string | undefined })

/** The pending operation with the lowest generation, of those that are not the unit's own. */
export interface Pending {
  readonly generation: number
  /** Until its deadline, in milliseconds; 0 where overdue. */
  readonly remainingMs: number
}

/** Unsettled operations of a job that share a status and a generation. */
export interface CensusRow {
  readonly status: 'in_flight' | 'overdue' | 'unknown'
  readonly generation: number
  readonly count: number
}

/** What a unit sees of its job, all of it read after the job was locked. */
export interface JobView {
  readonly fence: Fence | undefined
  /** The record of the unit's own operation, if it names one that is known. */
  readonly operation: Operation | undefined
  /** Other operations of the job that began and have not ended: lowest generation of each kind. */
  readonly pending: { readonly inFlight?: Pending; readonly overdue?: Pending }
  /** Every unsettled operation of the job, counted; only where the unit asks. */
  readonly census: readonly CensusRow[] | undefined
}

/** A record to put in place of whatever the unit's operation has. */
export type OperationChange =
  | {
      readonly status: 'in_flight'
      readonly generation: number
      readonly fingerprint: string | undefined
      readonly attemptId: string
      /** The engine adds this to its own time, read while it has the job. */
      readonly deadlineMs: number
    }
  | {
      readonly status: 'unknown'
      readonly generation: number
      readonly fingerprint: string | undefined
      readonly attemptId: string
    }
  | {
      readonly status: 'applied'
      readonly generation: number
      readonly fingerprint: string | undefined
      readonly result: string | undefined
    }

/** What is to be done to the unit's operation. */
export type Action =
  | { readonly kind: 'none' }
  | { readonly kind: 'put'; readonly operation: OperationChange }
  | { readonly kind: 'delete' }
  /** Run the unit's effect and, where it names an operation, record it, both or neither. */
  | {
      readonly kind: 'apply'
      readonly generation: number
      readonly fingerprint: string | undefined
      /** Run the effect and leave whatever record there is as it stands (report mode). */
      readonly unrecorded?: true
    }

/** What a unit decided on a view: the engine carries it out and hands `answer` back. */
export interface Step<A> {
  readonly answer: A
  /** The fence to put; absent where it stays. It is kept even if the effect throws. */
  readonly fence?: Fence | undefined
  readonly action: Action
}

/** A result and its recorded spelling; `undefined` is recorded as absence. */
export interface Encoded<R> {
  readonly value: R
  readonly text: string | undefined
}

/** One change to one job: what to read, a pure step, and perhaps an effect. */
export interface Unit<Tx, Mode extends StoreMode, A, R = never> {
  readonly job: JobKey
  readonly operationId?: string | undefined
  readonly census?: true | undefined
  /**
   * What to do where the caller stands inside a transaction of his own on the same connection,
   * which this unit could only outlive or be rolled back with: a write waits for its end, a
   * reservation (effect, advance, seal) is refused with a `TypeError`. Engines on a pool, where a
   * unit always has its own connection, need not look.
   */
  readonly insideTransaction: 'wait' | 'refuse'
  /** Pure. Asked again whenever the engine has to start over. */
  step(view: JobView): Step<A>
  /** Run at most once in what is committed; may run again when the engine has to start over. */
  effect?(tx: Tx): Returned<Mode, Encoded<R>>
}

/** What became of a unit, once it is durable. */
export interface Done<A, R = never> {
  readonly answer: A
  /** Present where the step asked for the effect. */
  readonly effect:
    | { readonly status: 'returned'; readonly value: R }
    | { readonly status: 'threw'; readonly error: unknown }
    | undefined
}

/** One unsettled operation, as operators see it. */
export interface UnsettledOperation extends JobKey {
  readonly operationId: string
  readonly generation: number
  readonly status: 'in_flight' | 'overdue' | 'unknown'
}

/** Which unsettled operations to list; all of them unless told. */
export interface UnsettledQuery {
  readonly scope?: string | undefined
  readonly jobId?: string | undefined
  /** How many at the most, 1 to 1000; 100 unless told. */
  readonly limit?: number | undefined
}

/** Which records may go. */
export interface PruneRequest {
  /** Records applied at least that long ago by the store's time, in milliseconds; 0 or more. */
  readonly olderThanMs: number
  /** How many at the most in one call, 1 to 10 000; 1000 unless told. */
  readonly limit?: number | undefined
  /** Only records of sealed jobs, for which `olderThanMs: 0` is safe. */
  readonly sealedOnly?: boolean | undefined
}

/** Every method rejects (or throws) `StoreUnavailableError` where the store cannot answer. */
export interface FenceStore<Tx, Mode extends StoreMode> {
  readonly mode: Mode
  /**
   * Locks the job, reads the view (in a later statement than the lock wait), steps, puts the
   * fence, then in one savepoint runs the effect and puts the record, and commits. An effect that
   * throws undoes effect and record, not the fence. Resolves only once the commit is durable.
   */
  transact<A, R>(unit: Unit<Tx, Mode, A, R>): Promise<Done<A, R>>
  /** The same at once, on the calling stack; only synchronous engines have it. */
  transactSync?<A, R>(unit: Unit<Tx, Mode, A, R>): Done<A, R>
  /** The same inside a transaction that the user has opened: nothing is committed here. */
  within<A, R>(tx: Tx, unit: Unit<Tx, Mode, A, R>): Answer<Mode, Done<A, R>>
  /** Reads without locking: what comes back may be history by the time it is looked at. */
  view(job: JobKey, operationId?: string): Promise<JobView>
  /** Unsettled operations, lowest generation first. */
  list(query: UnsettledQuery): Promise<UnsettledOperation[]>
  /** Deletes applied records in one batch; never fences, never what is in flight or unknown. */
  prune(request: PruneRequest): Promise<{ readonly pruned: number }>
  close(): Promise<void>
}
