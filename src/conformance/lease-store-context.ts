/** What the laws of a lease store need of an engine, and the small bench that they stand on. */

import assert from 'node:assert/strict'
import type {
  ClaimRequest,
  ClaimResult,
  Lease,
  LeaseKey,
  LeaseStore,
} from '../lease/lease-store.ts'

/** A fresh, empty store; each law gets a context of its own. */
export interface LeaseStoreContext {
  /**
   * A further store on the same data, by a handle (connection, pool, client) of its own. It takes
   * `now` for the time of the store; the engine's own clock where there is none.
   */
  open(now?: () => number): Promise<LeaseStore>
}

/** One law of the port: a sentence, and code that throws where an engine breaks it. */
export interface LeaseStoreLaw {
  readonly name: string
  run(context: LeaseStoreContext): Promise<void>
}

/** A store under test with a clock that stands still unless it is moved. */
export class Bench {
  now = 1_700_000_000_000
  store!: LeaseStore
  readonly #context: LeaseStoreContext
  readonly #stores: LeaseStore[] = []

  constructor(context: LeaseStoreContext) {
    this.#context = context
  }

  async open(): Promise<LeaseStore> {
    const store = await this.#context.open(() => this.now)
    this.#stores.push(store)
    return store
  }

  /** A store that is left to the engine's own clock. */
  async openOnEngineTime(): Promise<LeaseStore> {
    const store = await this.#context.open()
    this.#stores.push(store)
    return store
  }

  async openMany(count: number): Promise<LeaseStore[]> {
    return Promise.all(Array.from({ length: count }, () => this.open()))
  }

  async end(): Promise<void> {
    await Promise.all(this.#stores.map((store) => store.close()))
  }

  /** Claims what must be free. */
  async claim(request: Partial<ClaimRequest> = {}): Promise<Lease> {
    return claimed(await this.store.claim(wants(request)))
  }

  /** A claim that must be refused since somebody has the job. */
  async held(request: Partial<ClaimRequest> = {}) {
    const answer = await this.store.claim(wants(request))
    assert.equal(answer.status, 'held')
    return answer as Extract<ClaimResult, { status: 'held' }>
  }

  /** Runs the body and checks that nothing is remembered differently after it. */
  async unchanged(jobId: string, body: () => Promise<void>): Promise<void> {
    const before = await this.store.get(jobId)
    await body()
    assert.deepEqual(await this.store.get(jobId), before)
  }
}

export const TTL = 30_000

export function wants(request: Partial<ClaimRequest> = {}): ClaimRequest {
  return { jobId: 'job', owner: 'worker', ttlMs: TTL, ...request }
}

export function claimed(answer: ClaimResult): Lease {
  assert.equal(answer.status, 'claimed')
  return (answer as Extract<ClaimResult, { status: 'claimed' }>).lease
}

export function law(name: string, body: (bench: Bench) => Promise<void>): LeaseStoreLaw {
  return {
    name,
    async run(context) {
      const bench = new Bench(context)
      bench.store = await bench.open()
      try {
        await body(bench)
      } finally {
        await bench.end()
      }
    },
  }
}

/** The three verbs of a holder, as one: what they do must depend on the key alone. */
export const holderVerbs = ['renew', 'complete', 'release'] as const

export function asHolder(
  store: LeaseStore,
  verb: (typeof holderVerbs)[number],
  key: LeaseKey,
): Promise<{ readonly status: string; readonly reason?: string }> {
  return verb === 'renew' ? store.renew({ ...key, ttlMs: TTL }) : store[verb](key)
}

/** Checks that the lease is over, and why. */
export async function assertLost(store: LeaseStore, key: LeaseKey, reason: string): Promise<void> {
  for (const verb of holderVerbs) {
    assert.deepEqual(await asHolder(store, verb, key), { status: 'lost', reason }, verb)
  }
}
