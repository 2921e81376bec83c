/** The keys of both stores, their versions, and what is expected of a server. */

import { performance } from 'node:perf_hooks'
import { StoreUnavailableError } from '../../errors.ts'
import { checkDuration, checkOptionNames, type OptionNames } from '../../options.ts'
import { RedisConnection, type RunScript, script } from './redis-connection.ts'
import type { RedisClient, RedisStoreOptions } from './redis-database.ts'

/** Rises with every change of what is stored under the keys of a component. */
const VERSION = '1'

/**
 * What every script of a store begins with: the version key must be there. It is never deleted and
 * never expires, so where it is missing the data has been flushed, evicted or lost, and the fences
 * with it: from then on everything is refused until somebody has looked and set it up again.
 */
export const ENTER = `
local found = redis.call('GET', KEYS[1])
if found ~= '${VERSION}' then
  return redis.error_reply('WRITEFENCE_SCHEMA ' .. (found or 'none'))
end
local time = redis.call('TIME')
local clock = time[1] * 1000 + math.floor(time[2] / 1000)
`

const SET_UP = script(`
redis.call('SET', KEYS[1], '${VERSION}', 'NX')
return redis.call('GET', KEYS[1])`)

const INSPECT = script(
  "return { redis.pcall('INFO', 'memory', 'persistence') }",
  ' flags=no-writes',
)

/** How the keys of a store begin; `'writefence'` unless told. @throws TypeError, RangeError */
function checkPrefix(value: unknown = 'writefence'): string {
  if (typeof value !== 'string') throw new TypeError(`prefix must be a string, not ${typeof value}`)
  if (!/^[^{}\p{Cc}]{1,100}$/u.test(value)) {
    throw new RangeError('prefix must have 1 to 100 characters, no braces, no control characters')
  }
  return value
}

const NAMES = { now: true, prefix: true, timeoutMs: true } satisfies OptionNames<RedisStoreOptions>

/** What the two stores have in common: their keys, and their own connection. */
export class RedisKeyspace {
  readonly #connection: RedisConnection
  readonly #prefix: string
  readonly #component: 'fence' | 'lease'

  constructor(client: RedisClient, component: 'fence' | 'lease', options: RedisStoreOptions) {
    checkOptionNames(options, NAMES)
    this.#prefix = checkPrefix(options.prefix)
    this.#component = component
    const timeoutMs = checkDuration('timeoutMs', options.timeoutMs ?? 5000)
    this.#connection = new RedisConnection(client, timeoutMs, (run) => this.#inspect(run))
  }

  get timeoutMs(): number {
    return this.#connection.timeoutMs
  }

  /** What decides the slot on a Cluster (Redis Cluster specification, "Hash tags"). */
  get hashTag(): string {
    return `{${this.#prefix}}`
  }

  /**
   * When, by the server's clock, a commit must have taken place, or never will: some time before
   * its caller gives up, so that nothing lands after he did. `clock` was read just before `seenAt`.
   */
  deadline(clock: number, seenAt: number): number {
    return Math.floor(clock + performance.now() - seenAt + 0.9 * this.timeoutMs)
  }

  /** All keys are in one slot, so that one script can reach them. */
  key(kind: string, name?: string): string {
    return `${this.hashTag}:${kind}${name === undefined ? '' : `:${name}`}`
  }

  /** Runs a script that begins with {@link ENTER}. @throws StoreUnavailableError with advice */
  readonly run: RunScript = async (script, keys, args) => {
    try {
      return await this.#connection.run(script, [this.#version, ...keys], args)
    } catch (error) {
      throw this.#advice(error) ?? error
    }
  }

  /** Sets the version where there is none. @throws StoreUnavailableError where it is another */
  async setUp(): Promise<void> {
    const found = await this.#connection.run(SET_UP, [this.#version], [])
    if (found !== VERSION) throw otherVersion(this.#component, String(found))
  }

  /** @throws StoreUnavailableError once it is closed */
  assertOpen(): void {
    this.#connection.assertOpen()
  }

  close(): Promise<void> {
    return this.#connection.close()
  }

  get #version(): string {
    return this.key('schema', this.#component)
  }

  #advice(error: unknown): StoreUnavailableError | undefined {
    const text = error instanceof Error ? error.message : ''
    const found = /WRITEFENCE_SCHEMA (\S+)/.exec(text)?.[1]
    if (found === undefined) return undefined
    if (found !== 'none') return otherVersion(this.#component, found, error)
    return new StoreUnavailableError(
      `Redis: ${this.#version} is missing: call createSchema() once, when you set up. Where that` +
        ' was done, the data was flushed or lost since, and what it remembered of old generations' +
        ' with it: stop the workers, raise the generations, then set up again',
      { cause: error },
    )
  }

  async #inspect(run: RunScript): Promise<void> {
    const [info] = await run(INSPECT, [this.#version], []).then(asList, tooOld)
    // Where the user may not ask, he is trusted to know.
    if (typeof info !== 'string') return
    const policy = /maxmemory_policy:(\S+)/.exec(info)?.[1] ?? ''
    if (policy.startsWith('allkeys')) {
      throw new StoreUnavailableError(
        `Redis: maxmemory-policy ${policy} evicts fences and leases: set noeviction or volatile-*`,
      )
    }
    if (/aof_enabled:0/.test(info)) warnLessDurable(this.#prefix)
  }
}

/** Reads what a store has written. @throws StoreUnavailableError where somebody else wrote it */
export function parsed<T>(text: string): T {
  try {
    return JSON.parse(text) as T
  } catch (cause) {
    const told = 'Redis: what is stored is not what writefence has written'
    throw new StoreUnavailableError(told, { cause, retryable: false })
  }
}

function asList(reply: unknown): readonly unknown[] {
  return Array.isArray(reply) ? reply : []
}

function tooOld(error: unknown): never {
  const text = error instanceof Error ? error.message : ''
  if (!text.includes("near '#'")) throw error
  throw new StoreUnavailableError('Redis: the server is too old: 7.0 or later is needed', {
    cause: error,
  })
}

function otherVersion(component: string, found: string, cause?: unknown): StoreUnavailableError {
  const advice = Number(found) > Number(VERSION) ? 'upgrade writefence' : 'migrate the keys'
  return new StoreUnavailableError(
    `Redis: the ${component} keys have version ${found}, not ${VERSION}: ${advice}`,
    { cause },
  )
}

const warned = new Set<string>()

/**
 * Emits a process warning (code `WRITEFENCE_DURABILITY`), once a prefix, where a fence that was
 * acknowledged can be lost with the process of the server: a lost fence lets stale writes in.
 */
function warnLessDurable(prefix: string): void {
  if (warned.has(prefix)) return
  warned.add(prefix)
  process.emitWarning(
    'the Redis server keeps no append-only file: a restart loses fences and leases that were' +
      ' acknowledged. Set appendonly yes, and appendfsync always',
    { type: 'WritefenceWarning', code: 'WRITEFENCE_DURABILITY' },
  )
}
