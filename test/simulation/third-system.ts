/** The system that effects elsewhere act on: what was asked of it lands when the world says so. */

import { NotAppliedError } from 'writefence'
import type { Agenda, Option } from './agenda.ts'
import { EffectFailed, type ThirdSystem, type Truth } from './destination-host.ts'
import type { Request } from './messages.ts'

interface Asked {
  readonly call: string
  readonly request: Request
  readonly operation: string
  /** What can become of it, and without the proof that nothing did: made when it is asked for. */
  outcomes?: { readonly all: readonly Option[]; readonly unproven: readonly Option[] }
  resolve(value: unknown): void
  reject(error: unknown): void
}

export interface ThirdOptions {
  readonly destination: string
  readonly agenda: Agenda
  /** It recognises an operation that it has done, and does it once. */
  readonly deduplicates: boolean
  /** An effect has taken place. */
  landed(call: string, request: Request): void
  /** Runs the destination's code for this call from here on. */
  enter(call: string): void
  /** The call hangs: whoever waits for it gives up. */
  silent(call: string): void
}

export class SimulatedThirdSystem implements ThirdSystem {
  readonly #options: ThirdOptions
  readonly #done = new Map<string, unknown>()
  readonly #asked = new Map<string, Asked>()

  constructor(options: ThirdOptions) {
    this.#options = options
  }

  ask(call: string, request: Request, operationId: string): Promise<unknown> {
    const operation = operationOf(request, operationId)
    const id = `land:${this.#options.destination}:${call}`
    return new Promise((resolve, reject) => {
      const asked: Asked = { call, request, operation, resolve, reject }
      this.#asked.set(id, asked)
      this.#options.agenda.add(id, () => this.#outcomes(id, asked))
    })
  }

  truth(request: Request, operationId: string): Truth {
    const operation = operationOf(request, operationId)
    if (this.#done.has(operation)) {
      return { status: 'applied', result: this.#done.get(operation) }
    }
    const underWay = [...this.#asked.values()].some((each) => each.operation === operation)
    return { status: underWay ? 'unknown' : 'not_applied' }
  }

  /** Nobody waits for these any more, since the destination has crashed; they may still land. */
  destinationCrashed(): void {
    for (const [id, asked] of this.#asked) {
      this.#options.agenda.add(id, () => [
        { key: `land ${asked.call}`, optional: true, run: () => this.#land(id, asked) },
      ])
    }
  }

  /** What has not landed never will. */
  forget(): void {
    for (const id of this.#asked.keys()) this.#options.agenda.remove(id)
    this.#asked.clear()
  }

  digest(): string {
    return JSON.stringify([...this.#done])
  }

  #outcomes(id: string, asked: Asked): readonly Option[] {
    asked.outcomes ??= this.#possible(id, asked)
    return this.#isOnlyOne(asked) ? asked.outcomes.all : asked.outcomes.unproven
  }

  #possible(id: string, asked: Asked): NonNullable<Asked['outcomes']> {
    const { call, resolve, reject } = asked
    const end = (then: () => void) => () => {
      this.#options.enter(call)
      then()
    }
    const refuse = () => {
      this.#drop(id)
      reject(new NotAppliedError())
    }
    const landBroken = () => {
      this.#land(id, asked)
      reject(new EffectFailed('after it had taken place'))
    }
    const landSilent = () => {
      this.#land(id, asked)
      this.#options.silent(call)
    }
    const breaks = () => {
      this.#drop(id)
      reject(new EffectFailed('before it could take place'))
    }
    const unproven: Option[] = [
      { key: `land ${call}`, run: end(() => resolve(this.#land(id, asked))) },
      { key: `land-broken ${call}`, fault: 'land-broken', run: end(landBroken) },
      { key: `land-silent ${call}`, fault: 'land-silent', run: landSilent },
      { key: `break ${call}`, fault: 'break', run: end(breaks) },
    ]
    const all: Option[] = [
      ...unproven,
      { key: `refuse ${call}`, fault: 'refuse', run: end(refuse) },
    ]
    return { unproven, all }
  }

  /** A proof that nothing took place is none while an earlier attempt may still land. */
  #isOnlyOne({ operation }: Asked): boolean {
    return [...this.#asked.values()].filter((each) => each.operation === operation).length === 1
  }

  #land(id: string, { operation, call, request }: Asked): unknown {
    this.#drop(id)
    if (this.#options.deduplicates && this.#done.has(operation)) return this.#done.get(operation)
    const result = { by: call }
    this.#done.set(operation, result)
    this.#options.landed(call, request)
    return result
  }

  #drop(id: string): void {
    this.#asked.delete(id)
    this.#options.agenda.remove(id)
  }
}

function operationOf({ jobId, scope = '' }: Request, operationId: string): string {
  return JSON.stringify([scope, jobId, operationId])
}
