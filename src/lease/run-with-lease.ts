import { type LostReason, StoreUnavailableError, WriteRefusedError } from '../errors.ts'
import { checkMethods } from '../options.ts'
import { Deadline, elapsedMs, type Instant, instant } from './deadline.ts'
import { startHeartbeat, watchDeadline } from './heartbeat.ts'
import { type HeldLease, heldLease } from './held-lease.ts'
import { Holding } from './holding.ts'
import { newLeaseId } from './lease-arguments.ts'
import type { ClaimResult, Lease, LeaseStore } from './lease-store.ts'
import { type Report, reporter } from './report.ts'
import { checkRunOptions, type RunOptions, type RunPlan } from './run-options.ts'
import { completeLease, releaseLease, type Unsettled } from './settle-lease.ts'
import { takeOver } from './takeover.ts'
import { answerWithin, backoffMs, later, pause } from './waiting.ts'

/** How a run ended. */
export type RunOutcome<R> =
  /** The handler's value; the job is done, or given back (`settle: 'release'`). */
  | { readonly status: 'completed' | 'released'; readonly value: R; readonly generation: number }
  /** Somebody else has the job: come again then. */
  | { readonly status: 'held'; readonly retryAfterMs: number }
  /** Nothing to do: the job was completed before, or its destinations are sealed and it is now. */
  | { readonly status: 'already_completed' }
  /**
   * The lease was lost. `error` is what the handler or a destination threw, or what kept us from
   * the store; absent where nothing was thrown but the `LeaseLostError` of this very loss (as by
   * `assertHeld`, `lease.fetch` and `lease.signal`), which says no more than `reason`.
   */
  | { readonly status: 'lost'; readonly reason: LostReason; readonly error?: unknown }
  /** `signal` asked to stop: the handler has settled, the job was given back. */
  | { readonly status: 'stopped' }

/** How the work under the lease ended. */
type Ending<R> =
  | { readonly kind: 'returned'; readonly value: R }
  | { readonly kind: 'threw'; readonly error: unknown }
  /** Every destination was sealed before the handler began. */
  | { readonly kind: 'sealed' }
  /** Lost or stopped before the handler began. */
  | { readonly kind: 'not_begun' }

const STORE_METHODS = ['claim', 'renew', 'complete', 'release'] as const

interface Run {
  readonly store: LeaseStore
  readonly plan: RunPlan
  readonly holding: Holding
  readonly report: Report
}

/**
 * Claims the job, runs the handler under the lease, and completes the job (or gives it back).
 *
 * The lease is renewed meanwhile. If it is lost, or `signal` asks to stop, the handler's signal
 * aborts; the run always waits for the handler to settle, and only then gives the job back.
 *
 * What the handler throws is rethrown once the job is given back, except that
 * - after a loss the outcome is `lost`, and has the error, unless that is the loss itself;
 * - after a stop the abort itself (the signal's reason, or an `AbortError`) is not an error;
 * - `stale` or `conflict` for this very token is a loss (`fenced`);
 * - `sealed` for this very token means that an earlier generation had ended the job (rule 16):
 *   with `settle: 'complete'` the job is completed and the outcome is `already_completed`, as it
 *   is, without running the handler, where all `destinations` are sealed.
 *
 * @throws TypeError or RangeError naming the store or the option, before anything is sent
 * @throws StoreUnavailableError where the store cannot be reached to claim
 * @throws WriteRefusedError where a destination cannot be taken over: `in_flight` or
 * `outcome_unknown` for older operations that do not end, or what the destination answers
 */
export async function runWithLease<R>(
  store: LeaseStore,
  options: RunOptions,
  handler: (lease: HeldLease) => R | Promise<R>,
): Promise<RunOutcome<R>> {
  checkMethods('runWithLease needs a lease store', store, STORE_METHODS)
  const plan = checkRunOptions(options)
  if (typeof handler !== 'function') throw new TypeError('handler must be a function')
  const { jobId, owner, onEvent } = plan
  const sent = instant()
  const answer = await claim(store, plan, sent)
  const generation = answer.status === 'claimed' ? answer.lease.generation : answer.generation
  const report = reporter({ jobId, owner, generation }, onEvent)
  switch (answer.status) {
    case 'stopped':
      report({ event: 'stopped' })
      return { status: 'stopped' }
    case 'lost':
      return lost(report, answer)
    case 'held':
      report({ event: 'held' })
      return { status: 'held', retryAfterMs: answer.retryAfterMs }
    case 'completed':
      report({ event: 'already_completed' })
      return { status: 'already_completed' }
    case 'claimed':
      report({ event: 'claimed' })
      return runHeld({ store, plan, report }, answer.lease, sent, handler)
  }
}

const CLAIM_TRIES = 3

type NotClaimed = { readonly generation?: undefined } & (
  | ({ readonly status: 'lost' } & Unsettled)
  | { readonly status: 'stopped' }
)

/** Claims under one leaseId however often it is sent: the repetition finds the lease, if any. */
async function claim(
  store: LeaseStore,
  { jobId, owner, ttlMs, marginMs, claimTimeoutMs, signal }: RunPlan,
  sent: Instant,
): Promise<ClaimResult | NotClaimed> {
  const request = { jobId, owner, ttlMs, leaseId: newLeaseId() }
  const lastsMs = ttlMs - marginMs
  const stop = signal ?? new AbortController().signal
  for (let failures = 0; !stop.aborted; failures += 1) {
    const patienceMs = Math.min(claimTimeoutMs, lastsMs) - elapsedMs(sent)
    try {
      return await answerWithin(patienceMs, 'claim', async () => store.claim(request))
    } catch (error) {
      // It may have been claimed, but what was claimed may be over by now. (A timer can be early.)
      if (elapsedMs(sent) + 1 >= lastsMs) return { status: 'lost', reason: 'unreachable', error }
      const spent = failures + 1 >= CLAIM_TRIES || elapsedMs(sent) >= claimTimeoutMs
      if (spent || isFinal(error)) throw error
      await pause(backoffMs(failures), stop)
    }
  }
  return { status: 'stopped' }
}

/** Whether asking again would be answered the same. */
function isFinal(error: unknown): boolean {
  const refused = error instanceof StoreUnavailableError && !error.retryable
  return refused || error instanceof TypeError || error instanceof RangeError
}

/** From the claim to the end: everything that is set up here is taken down here. */
async function runHeld<R>(
  { store, plan, report }: Omit<Run, 'holding'>,
  lease: Lease,
  sent: Instant,
  handler: (lease: HeldLease) => R | Promise<R>,
): Promise<RunOutcome<R>> {
  const work = new AbortController()
  const takeDown: (() => void)[] = []
  const deadline = new Deadline(sent, plan.ttlMs - plan.marginMs)
  const holding = new Holding(lease, deadline, (error) => {
    for (const each of takeDown) each()
    report({ event: 'lost', reason: error.reason, error: error.cause })
    work.abort(error)
  })
  const stopHeartbeat = startHeartbeat(store, holding, plan, report)
  takeDown.push(stopHeartbeat, watchDeadline(holding))
  const stop = () => {
    const grace = later(stopHeartbeat, plan.graceMs)
    takeDown.push(() => clearTimeout(grace))
    work.abort(plan.signal?.reason)
  }
  plan.signal?.addEventListener('abort', stop)
  takeDown.push(() => plan.signal?.removeEventListener('abort', stop))
  if (plan.signal?.aborted) stop()

  const run = { store, plan, holding, report }
  const ending = await carryOut(run, work.signal, handler)
  for (const each of takeDown) each()
  return conclude(run, ending)
}

async function carryOut<R>(
  { plan, holding, report }: Run,
  signal: AbortSignal,
  handler: (lease: HeldLease) => R | Promise<R>,
): Promise<Ending<R>> {
  const { jobId, generation, leaseId } = holding.lease
  try {
    if (plan.destinations.length > 0) {
      const token = { jobId, generation, leaseId }
      const { sealed } = await takeOver(plan.destinations, token, plan, signal)
      if (!signal.aborted) report({ event: 'fenced' })
      if (sealed && plan.settle === 'complete') return { kind: 'sealed' }
    }
    // Asked last: nothing may come between this look at the clocks and the handler's start.
    if (holding.remainingMs() <= 0 || signal.aborted) return { kind: 'not_begun' }
    return { kind: 'returned', value: await handler(heldLease(holding, signal, plan)) }
  } catch (error) {
    return { kind: 'threw', error }
  }
}

/** The handler has settled: what is told to the store, and what to the caller (rules 9 and 16). */
async function conclude<R>(run: Run, ending: Ending<R>): Promise<RunOutcome<R>> {
  const { store, plan, holding, report } = run
  const { lease } = holding
  const error = ending.kind === 'threw' ? ending.error : undefined
  const refusal = refusedCode(error, lease)
  if (refusal === 'stale' || refusal === 'conflict') holding.lose('fenced', error)
  const loss = holding.end(plan.settle === 'complete' ? 'completed' : 'released')
  const giveBack = () => releaseLease(store, lease, plan, report)

  if (loss !== undefined) {
    // Nobody has worked under it: the next one need not wait for the store to find out.
    if (ending.kind === 'not_begun') await giveBack()
    const also = error === undefined || error === loss ? {} : { error }
    return { status: 'lost', reason: loss.reason, ...also }
  }
  if (plan.signal?.aborted) {
    const unsettled = await giveBack()
    if (ending.kind === 'threw' && !isAbort(error, plan.signal)) throw error
    if (unsettled !== undefined) return lost(report, unsettled)
    report({ event: 'stopped' })
    return { status: 'stopped' }
  }
  if (ending.kind === 'threw' && !(refusal === 'sealed' && plan.settle === 'complete')) {
    await giveBack()
    throw error
  }
  const unsettled =
    plan.settle === 'complete' ? await completeLease(store, lease, plan, report) : await giveBack()
  if (unsettled !== undefined) return lost(report, unsettled)
  if (ending.kind !== 'returned') {
    report({ event: 'already_completed' })
    return { status: 'already_completed' }
  }
  const status = plan.settle === 'complete' ? 'completed' : 'released'
  return { status, value: ending.value, generation: lease.generation }
}

function lost(report: Report, { reason, error }: Unsettled): RunOutcome<never> {
  report({ event: 'lost', reason, error })
  return { status: 'lost', reason, ...(error === undefined ? {} : { error }) }
}

/** The code of a refusal of this very token, wherever in the handler it came from. */
function refusedCode(error: unknown, lease: Lease): string | undefined {
  const own =
    error instanceof WriteRefusedError &&
    error.jobId === lease.jobId &&
    error.generation === lease.generation
  return own ? error.code : undefined
}

function isAbort(error: unknown, signal: AbortSignal): boolean {
  return error === signal.reason || (error instanceof Error && error.name === 'AbortError')
}
