import type { Outcome } from '../guard/outcome.ts'
import {
  FENCING_VERDICT,
  type FencingVerdict,
  formatFencingVerdict,
  IDEMPOTENT_REPLAYED,
  type VerdictWord,
} from '../wire/headers.ts'
import type { HeadChange } from './exchange.ts'
import { isProblem } from './http-error.ts'

/** What the answer to one request says of its verdict, kept up to date until the head goes out. */
export class AnswerVerdict {
  readonly #enforced: boolean
  #verdict: FencingVerdict = { word: 'passed' }

  /** Where nothing is enforced (report mode) every answer says `passed`: it proves nothing. */
  constructor(enforced: boolean) {
    this.#enforced = enforced
  }

  get word(): VerdictWord {
    return this.#verdict.word
  }

  /** The token was let in. */
  passed(highestGeneration: number | undefined): void {
    this.#verdict = { word: 'passed', highestGeneration }
  }

  /** Of several writes in one request one that took place now makes the answer a first one. */
  outcome({
    status,
    highestGeneration,
  }: Pick<Outcome<unknown>, 'status' | 'highestGeneration'>): void {
    const word = this.word === 'applied' ? 'applied' : status
    this.#verdict = { word, highestGeneration }
  }

  /** An error of anybody else's leaves the verdict as it is. */
  refused(error: unknown): void {
    if (!isProblem(error)) return
    const { highestGeneration } = this.#verdict
    const told = 'highestGeneration' in error ? error.highestGeneration : undefined
    this.#verdict = { word: error.code, highestGeneration: told ?? highestGeneration }
  }

  /** The effect ended without proof of what happened. */
  unknown(): void {
    this.#verdict = { ...this.#verdict, word: 'outcome_unknown' }
  }

  /** Set on every answer, over whatever a handler (one that passes on another's) has set. */
  headers(): HeadChange['headers'] {
    const told: FencingVerdict = this.#enforced ? this.#verdict : { word: 'passed' }
    return {
      [FENCING_VERDICT]: formatFencingVerdict(told),
      [IDEMPOTENT_REPLAYED]: told.word === 'replayed' ? 'true' : undefined,
    }
  }
}
