/** What holds between the answers that callers got and the effects that took place. */

import {
  type Answer,
  type Applied,
  type Invoke,
  isSuccess,
  keyOf,
  nameOf,
  provesNothing,
} from './history.ts'
import type { Report } from './history-checker.ts'

interface Effect {
  readonly generation: number
  readonly call: string | undefined
}

interface Call {
  readonly name: string
  readonly verb: Invoke['verb']
  readonly generation: number | undefined
  /** Whether the operation had taken place, or been acknowledged, before this call was sent. */
  readonly afterwards: boolean
  answer: Answer | undefined
}

interface Operation {
  readonly name: string
  /** Without an operation id each call is an operation of its own: duplicates are not known. */
  readonly named: boolean
  readonly effects: Effect[]
  readonly calls: Map<string, Call>
  acknowledged: boolean
}

const WRITES: readonly string[] = ['write', 'effect']

export class OperationRules {
  readonly #report: Report
  readonly #operations = new Map<string, Operation>()
  readonly #operationOf = new Map<string, Operation>()
  #effects = 0

  constructor(report: Report) {
    this.#report = report
  }

  invoked(invoke: Invoke): void {
    if (!WRITES.includes(invoke.verb)) return
    const { call: name, verb, generation } = invoke
    const operation = this.#operation(invoke)
    const afterwards = operation.acknowledged || operation.effects.length > 0
    operation.calls.set(name, { name, verb, generation, afterwards, answer: undefined })
    this.#operationOf.set(name, operation)
  }

  answered(answer: Answer): void {
    const operation = this.#operationOf.get(answer.call)
    const call = operation?.calls.get(answer.call)
    if (operation === undefined || call === undefined) return
    call.answer = answer
    operation.acknowledged ||= isSuccess(answer)
    // Who is told that nothing took place may do it again by other means.
    if (call.afterwards && answer.operationApplied === false) {
      this.#report('untrue_refusal', `${operation.name}: ${call.name} was told: not applied`)
    }
  }

  applied(effect: Applied): void {
    this.#effects += 1
    const { effects, name, named } = this.#operation(effect)
    effects.push({ generation: effect.generation, call: effect.call })
    if (named && effects.length === 2) this.#report('applied_twice', name)
  }

  finish(): void {
    for (const operation of this.#operations.values()) {
      for (const effect of operation.effects) this.#explain(operation, effect)
      this.#compare(operation)
    }
  }

  counts() {
    return { operations: this.#operations.size, effects: this.#effects }
  }

  digest(): string {
    const all = [...this.#operations].map(([key, { calls, ...known }]) => {
      return [key, known.effects, known.acknowledged, [...calls.values()].map(spelled).sort()]
    })
    return JSON.stringify(all.sort())
  }

  /** Some call must be able to account for the effect. */
  #explain({ name, calls }: Operation, { call, generation }: Effect): void {
    const own = [...calls.values()].filter((each) =>
      call === undefined ? each.generation === generation : each.name === call,
    )
    const what = `${name}: an effect of generation ${generation}`
    const [first] = own
    if (first === undefined) {
      this.#report('effect_unexplained', `${what}, which nobody asked for`)
    } else if (own.every(({ answer }) => provesNothing(answer))) {
      this.#report('refused_but_applied', `${what}, and ${first.name} was told that there is none`)
    }
  }

  /** What was acknowledged is there, and everybody was told the same of it. */
  #compare({ name, effects: [effect], calls }: Operation): void {
    const told = [...calls.values()].filter(({ answer }) => answer && isSuccess(answer))
    const [first] = told
    if (first !== undefined && effect === undefined) {
      this.#report('acknowledged_lost', `${name}: ${first.name} was told that it is applied`)
    }
    for (const { name: call, verb, answer } of told) {
      if (JSON.stringify(answer?.result) !== JSON.stringify(first?.answer?.result)) {
        this.#report('replay_differs', `${name}: ${call} got another result than ${first?.name}`)
      }
      const at = answer?.appliedGeneration
      // Who has let a third system find its duplicates cannot know whose request it was.
      const truth = verb === 'write' ? effect?.generation : first?.answer?.appliedGeneration
      if (at !== undefined && truth !== undefined && at !== truth) {
        this.#report('replay_differs', `${name}: ${call} was told generation ${at}, not ${truth}`)
      }
    }
    const misled = [...calls.values()].find(({ answer }) => answer?.operationApplied === true)
    if (misled !== undefined && effect === undefined) {
      this.#report('untrue_refusal', `${name}: ${misled.name} was told that it was applied`)
    }
  }

  #operation(of: Invoke | Applied): Operation {
    const { operationId, call } = of
    const key = JSON.stringify([keyOf(of), operationId ?? null, operationId ? null : call])
    const known = this.#operations.get(key)
    if (known !== undefined) return known
    const name = `${nameOf(of)} ${operationId ?? call}`
    const named = operationId !== undefined
    const operation = { name, named, effects: [], calls: new Map(), acknowledged: false }
    this.#operations.set(key, operation)
    return operation
  }
}

function spelled(call: Call): string {
  return JSON.stringify(call)
}
