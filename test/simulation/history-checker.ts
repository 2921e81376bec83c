/** Judges a history by the guarantees alone, event by event; knows nothing of how they are kept. */

import { FenceRules } from './fence-rules.ts'
import type { Answer, Applied, FenceSeen, HistoryEvent, Invoke } from './history.ts'
import { LeaseRules } from './lease-rules.ts'
import { OperationRules } from './operation-rules.ts'

/** Each rule is explained in docs/history.md. */
export type Rule =
  | 'generation_fell'
  | 'applied_twice'
  | 'acknowledged_lost'
  | 'refused_but_applied'
  | 'effect_unexplained'
  | 'replay_differs'
  | 'fence_fell'
  | 'stale_accepted'
  | 'sealed_accepted'
  | 'two_holders'
  | 'untrue_refusal'
  | 'lease_generation_reused'
  | 'superseded_lease_kept'
  | 'completed_job_claimed'

export interface Violation {
  readonly rule: Rule
  readonly message: string
  /** How many events had been read: the last of them broke the rule. */
  readonly after: number
}

export type Report = (rule: Rule, message: string) => void

/** One set of rules, which hears of what it asks for. */
interface Rules {
  invoked?(event: Invoke): void
  answered?(event: Answer): void
  applied?(event: Applied): void
  fenceSeen?(event: FenceSeen): void
  restored?(): void
  finish?(): void
  digest(): string
}

export class HistoryChecker {
  readonly violations: Violation[] = []
  readonly #operations: OperationRules
  readonly #leases: LeaseRules
  readonly #rules: readonly Rules[]
  #events = 0

  constructor() {
    const report: Report = (rule, message) => {
      this.violations.push({ rule, message, after: this.#events })
    }
    this.#operations = new OperationRules(report)
    this.#leases = new LeaseRules(report)
    this.#rules = [new FenceRules(report), this.#operations, this.#leases]
  }

  accept(event: HistoryEvent): void {
    this.#events += 1
    for (const rules of this.#rules) {
      if (event.event === 'invoke') rules.invoked?.(event)
      if (event.event === 'answer') rules.answered?.(event)
      if (event.event === 'applied') rules.applied?.(event)
      if (event.event === 'fence') rules.fenceSeen?.(event)
      if (event.event === 'restored') rules.restored?.()
    }
  }

  /** The history has ended: what is missing now is missing. */
  finish(): readonly Violation[] {
    for (const rules of this.#rules) rules.finish?.()
    return this.violations
  }

  /** How much was judged, so that a green report on nothing shows. */
  counts() {
    return { events: this.#events, ...this.#operations.counts(), ...this.#leases.counts() }
  }

  /** All that later events will be judged by, spelled the same for equal states. */
  digest(): string {
    return this.#rules.map((rules) => rules.digest()).join('\n')
  }
}

export function checkHistory(events: Iterable<HistoryEvent>) {
  const checker = new HistoryChecker()
  for (const event of events) checker.accept(event)
  return { violations: checker.finish(), counts: checker.counts() }
}
