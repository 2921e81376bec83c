import type { EffectEnd } from '../guard/effect.ts'
import type { Outcome } from '../guard/outcome.ts'
import {
  FENCING_VERDICT,
  type FencingVerdict,
  formatFencingVerdict,
  IDEMPOTENT_REPLAYED,
  type VerdictWord,
} from '../wire/headers.ts'
import { isProblemCode } from '../wire/problem.ts'
import type { HeadChange } from './exchange.ts'
import { isProblem } from './http-error.ts'

/** What the answer to one request says of its verdict, kept up to date until the head goes out. */
export class AnswerVerdict {
  readonly #enforced: boolean
  #verdict: FencingVerdict = { word: 'passed' }
  #running = 0
  /** Operations of which an effect ended without proof; whatever else took place hides none. */
  readonly #unknown = new Set<unknown>()

  /** Where nothing is enforced (report mode) every answer says `passed`: it proves nothing. */
  constructor(enforced: boolean) {
    this.#enforced = enforced
  }

  /** While a write runs on, what it will have done is not known. A refusal that came stands. */
  get word(): VerdictWord {
    if (this.#unknown.size > 0) return 'outcome_unknown'
    const { word } = this.#verdict
    return this.#running > 0 && !isProblemCode(word) ? 'outcome_unknown' : word
  }

  /** A write or an effect has begun; returns what is called when it has ended, whichever way. */
  begin(): () => void {
    this.#running += 1
    return () => {
      this.#running -= 1
    }
  }

  /** The token was let in. */
  passed(highestGeneration: number | undefined): void {
    this.#verdict = { word: 'passed', highestGeneration }
  }

  /** Of several writes in one request one that took place now makes the answer a first one. */
  outcome(
    { status, highestGeneration }: Pick<Outcome<unknown>, 'status' | 'highestGeneration'>,
    operationId: string | undefined,
  ): void {
    this.#unknown.delete(operationId)
    const word = this.#verdict.word === 'applied' ? 'applied' : status
    this.#verdict = { word, highestGeneration }
  }

  /** An error of anybody else's leaves the verdict as it is. */
  refused(error: unknown): void {
    if (!isProblem(error)) return
    const { highestGeneration } = this.#verdict
    const told = 'highestGeneration' in error ? error.highestGeneration : undefined
    this.#verdict = { word: error.code, highestGeneration: told ?? highestGeneration }
  }

  /** What is known of an effect, whatever error it ended with. One without an id stays unknown. */
  ended(ended: EffectEnd | undefined, operationId: string | undefined): void {
    if (ended === 'unknown') this.#unknown.add(operationId ?? Symbol('unnamed'))
    if (ended !== 'applied') return
    this.#unknown.delete(operationId)
    this.#verdict = { ...this.#verdict, word: 'applied' }
  }

  /** Set on every answer, over whatever a handler (one that passes on another's) has set. */
  headers(): HeadChange['headers'] {
    const known: FencingVerdict = { ...this.#verdict, word: this.word }
    const told: FencingVerdict = this.#enforced ? known : { word: 'passed' }
    return {
      [FENCING_VERDICT]: formatFencingVerdict(told),
      [IDEMPOTENT_REPLAYED]: told.word === 'replayed' ? 'true' : undefined,
    }
  }
}
