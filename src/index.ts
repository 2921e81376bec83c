/** writefence: the check at the destination, and the smallest lease store that mints its tokens. */

export {
  AttemptSupersededError,
  type ErrorCode,
  isRetryable,
  LeaseLostError,
  type LostReason,
  NotAppliedError,
  type Refusal,
  type RefusalCode,
  type RequestCode,
  RequestRefusedError,
  StoreUnavailableError,
  type VerdictCode,
  WritefenceError,
  WriteRefusedError,
} from './errors.ts'
export type { DecisionEvent, FaultEvent, LeaseEvent } from './events.ts'
export type { Apply } from './guard/apply.ts'
export type { BoundFence, Override } from './guard/bound-fence.ts'
export { type Codec, jsonCodec } from './guard/codec.ts'
export type { EffectContext, EffectOptions, Finding, UnknownOperation } from './guard/effect.ts'
export type { FenceState } from './guard/fence-state.ts'
export type * from './guard/fence-store.ts'
export { type FencedStorage, fencedStorage, type StorageMethod } from './guard/fenced-storage.ts'
export type { WriteGuardOptions } from './guard/guard-options.ts'
export type { WriteIntent } from './guard/intent.ts'
export type { Outcome } from './guard/outcome.ts'
export type { Resolved } from './guard/settle.ts'
export type { Verdict } from './guard/verdict.ts'
export { type Resolution, WriteGuard } from './guard/write-guard.ts'
export type { HeldLease } from './lease/held-lease.ts'
export type { Fetch, LeaseFetchInit } from './lease/lease-fetch.ts'
export type * from './lease/lease-store.ts'
export type { RunOptions } from './lease/run-options.ts'
export { type RunOutcome, runWithLease } from './lease/run-with-lease.ts'
export type { Destination, DestinationState } from './lease/takeover.ts'
export { type FencingToken, MAX_GENERATION, MAX_ID_LENGTH } from './token.ts'
export { formatFencingToken, formatIdempotencyKey } from './wire/headers.ts'
