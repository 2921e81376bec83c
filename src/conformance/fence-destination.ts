/** The destination that the laws write to: its guards, its clock, its effects. */

import assert from 'node:assert/strict'
import { type VerdictCode, WriteRefusedError } from '../errors.ts'
import type { Apply } from '../guard/apply.ts'
import type { EffectOptions } from '../guard/effect.ts'
import type { StoreMode } from '../guard/fence-store.ts'
import type { WriteIntent } from '../guard/intent.ts'
import type { Outcome } from '../guard/outcome.ts'
import { WriteGuard } from '../guard/write-guard.ts'
import type { FenceStoreContext, FenceStoreLaw } from './fence-store-context.ts'

/** The laws are written once for both modes: what they get back they await, promise or not. */
export type Guard = WriteGuard<unknown, 'async'>
type Context = FenceStoreContext<unknown, 'async'>

export class Destination {
  readonly #context: Context
  readonly #guards: Guard[] = []
  readonly #running: Running[] = []
  #time = 1_700_000_000_000
  guard!: Guard

  private constructor(context: Context) {
    this.#context = context
  }

  static async of<Tx, Mode extends StoreMode>(
    context: FenceStoreContext<Tx, Mode>,
  ): Promise<Destination> {
    // The one cast: an engine gets its own Tx back, and a synchronous one answers at once.
    const destination = new Destination(context as unknown as Context)
    destination.guard = await destination.open()
    return destination
  }

  /** Another guard, over a store and a handle of its own. */
  open(): Promise<Guard> {
    return this.#open(() => this.#time)
  }

  /** A guard over a store that is left to the engine's own clock. */
  openOnEngineTime(): Promise<Guard> {
    return this.#open()
  }

  /** Closes the guard and goes on with one that knows only what was durable. */
  async reopenStore(): Promise<void> {
    await this.guard.close()
    this.guard = await this.open()
  }

  /** Moves the store's clock, back as well. */
  advanceClock(ms: number): void {
    this.#time += ms
  }

  log(): Promise<string[]> {
    return this.#context.log()
  }

  transaction<T>(body: (tx: unknown) => T | Promise<T>): Promise<T> {
    return this.#context.transaction(body as (tx: unknown) => Promise<T>)
  }

  /** An effect that appends the text and returns the result. */
  appends<R = undefined>(text: string, result?: R): Apply<unknown, R, 'async'> {
    return (tx) => after(this.#context.append(tx, text), () => result as R)
  }

  /** An effect that appends the text and then throws. */
  throws(text: string, error: unknown): Apply<unknown, never, 'async'> {
    return (tx) =>
      after(this.#context.append(tx, text), () => {
        throw error
      })
  }

  /** A write that must be applied. */
  async applies(intent: WriteIntent, text = 'effect', guard = this.guard): Promise<void> {
    const outcome = await guard.write(intent, this.appends(text, text))
    assert.equal(outcome.status, 'applied')
  }

  /** Begins an effect elsewhere and returns while it runs. @throws what refused it */
  async begin(
    intent: WriteIntent,
    options: EffectOptions<unknown> = {},
    guard = this.guard,
  ): Promise<Running> {
    const running = new Running()
    this.#running.push(running)
    await running.start(guard, intent, options)
    return running
  }

  async #open(now?: () => number): Promise<Guard> {
    const guard = new WriteGuard(await this.#context.open(now))
    this.#guards.push(guard)
    return guard
  }

  /** Ends what a law has left running, so that no timer outlives it. */
  async end(): Promise<void> {
    for (const running of this.#running) running.finish()
    await Promise.allSettled(this.#running.map((running) => running.outcome))
    await Promise.all(this.#guards.map((guard) => guard.close()))
  }
}

/** An effect elsewhere that is under way until it is told how it ends. */
export class Running {
  outcome: Promise<Outcome<unknown>> = Promise.reject(new Error('not started'))
  finish: (result?: unknown) => void = () => {}
  fail: (error: unknown) => void = () => {}

  constructor() {
    this.outcome.catch(() => {})
  }

  start(guard: Guard, intent: WriteIntent, options: EffectOptions<unknown>): Promise<unknown> {
    const end = new Promise<unknown>((resolve, reject) => {
      this.finish = resolve
      this.fail = reject
    })
    const started = new Promise<void>((resolve) => {
      const perform = (): Promise<unknown> => {
        resolve()
        return end
      }
      this.outcome = guard.effect(intent, perform, options)
    })
    this.outcome.catch(() => {})
    return Promise.race([started, this.outcome])
  }
}

/** A law over a destination. */
export function law(
  name: string,
  body: (destination: Destination) => Promise<unknown>,
): FenceStoreLaw {
  return {
    name,
    async run(context) {
      const destination = await Destination.of(context)
      try {
        await body(destination)
      } finally {
        await destination.end()
      }
    },
  }
}

/** A write of the job `job` under lease `a`, unless told otherwise. */
export function intent(
  generation: number,
  operationId?: string,
  more: Partial<WriteIntent> & { jobId?: string; leaseId?: string | undefined } = {},
): WriteIntent {
  const { jobId, leaseId, ...rest } = { jobId: 'job', leaseId: 'a', ...more }
  return { token: { jobId, generation, leaseId }, operationId, ...rest }
}

/** What a call fails with; fails itself where the call does not. */
export async function failure(call: Promise<unknown>): Promise<unknown> {
  const failed = await call.then(
    () => undefined,
    (error: unknown) => ({ error }),
  )
  assert.ok(failed !== undefined, 'the call succeeded where it must fail')
  return failed.error
}

/** Asserts that the guard refuses the call, with this code and these details. */
export async function refused(
  call: Promise<unknown>,
  code: VerdictCode,
  details: Partial<Pick<WriteRefusedError, 'highestGeneration' | 'operationApplied'>> & {
    retryAfterMs?: number | undefined
  } = {},
): Promise<void> {
  const error = await failure(call)
  if (!(error instanceof WriteRefusedError)) throw error
  assert.equal(error.code, code)
  for (const [name, value] of Object.entries(details)) {
    assert.deepEqual(error[name as keyof typeof details], value, name)
  }
}

/** Goes on once the first step is done: at once where it was no promise. */
export function after<F, T>(first: F, next: (value: Awaited<F>) => T): T | Promise<Awaited<T>> {
  const result = first instanceof Promise ? first.then(next) : next(first as Awaited<F>)
  return result as T | Promise<Awaited<T>>
}
