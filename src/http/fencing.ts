import type { StoreMode } from '../guard/fence-store.ts'
import type { WriteGuard } from '../guard/write-guard.ts'
import { checkMethods } from '../options.ts'
import { AnswerVerdict } from './answer-verdict.ts'
import type { Exchange } from './exchange.ts'
import {
  checkFencingOptions,
  type FencingOptions,
  type FencingSettings,
} from './fencing-options.ts'
import { Gate } from './gate.ts'
import { withHttp } from './http-error.ts'
import { protectHandler } from './protect-handler.ts'
import { insteadOfUnguarded } from './protect-write.ts'
import { RequestFence } from './request-fence.ts'

const GUARD_METHODS = ['write', 'within', 'effect', 'judge', 'advance', 'seal', 'inspect'] as const

/** A guard on a route, whatever the framework: takes exchanges, knows the fence of each request. */
export class Fencing<Tx, Mode extends StoreMode, Req extends object> {
  readonly #guard: WriteGuard<Tx, Mode>
  readonly #settings: FencingSettings<Req>
  readonly #gate: Gate<Tx, Mode, Req>
  // Of this guard and route alone: no header, and no other guard, can put anything here.
  readonly #fences = new WeakMap<object, RequestFence<Tx, Mode>>()

  /** @throws TypeError or RangeError naming what is wrong with the guard or the options */
  constructor(guard: WriteGuard<Tx, Mode>, options: FencingOptions<Req>) {
    checkMethods('fencing needs a WriteGuard', guard, GUARD_METHODS)
    this.#guard = guard
    this.#settings = checkFencingOptions(options)
    this.#gate = new Gate(guard, this.#settings)
  }

  /**
   * The fence of a request.
   * @throws TypeError where the request has not come through this guard
   */
  of(request: object): RequestFence<Tx, Mode> {
    const fence = this.#fences.get(request)
    if (fence !== undefined) return fence
    throw new TypeError(
      'the request has not come through this fencing(): mount it on the route, before the handler',
    )
  }

  /** Guards one exchange: answers it, lets it proceed or fails it, each once. Never rejects. */
  async handle(exchange: Exchange<Req>): Promise<void> {
    // Mounted twice on one route: the first has seen to it.
    if (this.#fences.has(exchange.request)) {
      exchange.proceed()
      return
    }
    const verdict = new AnswerVerdict(this.#settings.mode !== 'report')
    try {
      await this.#guarded(exchange, verdict)
    } catch (error) {
      verdict.refused(error)
      exchange.fail(withHttp(error))
    }
  }

  async #guarded(exchange: Exchange<Req>, verdict: AnswerVerdict): Promise<void> {
    const protectsWrite = this.#settings.protect === 'write'
    let checked: RequestFence<Tx, Mode> | undefined
    exchange.beforeHead((status) => ({
      headers: verdict.headers(),
      instead: checked && insteadOfUnguarded(checked, status),
    }))
    const { intent, tokenless, unsafe, highestGeneration } = await this.#gate.enter(exchange)
    const fence = new RequestFence(this.#guard, intent, verdict, this.#settings, tokenless)
    this.#fences.set(exchange.request, fence)
    Object.assign(exchange.request, { fence })
    verdict.passed(highestGeneration)
    if (unsafe && !protectsWrite) {
      await protectHandler(exchange, fence, this.#settings, verdict)
      return
    }
    if (unsafe) checked = fence
    exchange.proceed()
  }
}
