/** A store's own connection: opened when needed, given up as soon as it does not answer. */

import { createHash } from 'node:crypto'
import { StoreUnavailableError } from '../../errors.ts'
import {
  assertClient,
  linkOf,
  type RedisArgument,
  type RedisClient,
  type RedisLink,
  type RedisReply,
  unavailable,
} from './redis-database.ts'
import { inTime } from './redis-deadline.ts'

/** A Lua script and the digest by which the server knows it once it has seen it. */
export interface RedisScript {
  readonly text: string
  readonly sha: string
}

/**
 * The shebang is what makes Redis 7 refuse the script as a whole, before its first command, where
 * memory is short, the server is a replica, or too few replicas are in reach.
 */
export function script(body: string, flags = ''): RedisScript {
  const text = `#!lua${flags}\n${body}`
  return { text, sha: createHash('sha1').update(text).digest('hex') }
}

export type RunScript = (
  script: RedisScript,
  keys: readonly string[],
  args: readonly RedisArgument[],
) => Promise<RedisReply>

interface Session {
  readonly link: RedisLink
  readonly opened: Promise<void>
  isOpen: boolean
  /** Why it was ended: what all that waited on it are told. */
  fault: unknown
}

export class RedisConnection {
  readonly #client: RedisClient
  readonly #timeoutMs: number
  readonly #inspect: (run: RunScript) => Promise<void>
  #session: Session | undefined
  readonly #running = new Set<Promise<unknown>>()
  #closed = false

  /** `inspect` looks at each server that a connection was opened to, and throws to refuse it. */
  constructor(client: RedisClient, timeoutMs: number, inspect: (run: RunScript) => Promise<void>) {
    assertClient(client)
    this.#client = client
    this.#timeoutMs = timeoutMs
    this.#inspect = inspect
  }

  get timeoutMs(): number {
    return this.#timeoutMs
  }

  /**
   * Runs a script. Where there is no answer in time, the connection is destroyed first, with all
   * that waits on it: whether a script that was on its way has run is not known then.
   * @throws StoreUnavailableError
   */
  readonly run: RunScript = async (script, keys, args) => {
    this.assertOpen()
    const session = this.#attach()
    const answer = inTime(
      this.#send(session, script, keys, args),
      this.#timeoutMs,
      () => new Error(`no answer within ${this.#timeoutMs} ms`),
    )
    this.#running.add(answer)
    try {
      return await answer
    } catch (error) {
      if (isReply(error) && !isDemoted(error)) throw unavailable(error)
      this.#drop(session, error)
      throw unavailable(session.fault ?? error)
    } finally {
      this.#running.delete(answer)
    }
  }

  /** @throws StoreUnavailableError once it is closed */
  assertOpen(): void {
    if (this.#closed) throw new StoreUnavailableError('the store is closed')
  }

  /** Refuses what comes, lets the scripts that are under way have their answers, and hangs up. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.allSettled(this.#running)
    if (this.#session !== undefined) this.#drop(this.#session, undefined)
  }

  #attach(): Session {
    const current = this.#session
    if (current !== undefined && (!current.isOpen || current.link.isReady)) return current
    if (current !== undefined) this.#drop(current, undefined)
    const link = linkOf(this.#client, this.#timeoutMs)
    const session: Session = { link, opened: this.#open(link), isOpen: false, fault: undefined }
    session.opened.then(
      () => {
        session.isOpen = true
      },
      () => {},
    )
    this.#session = session
    return session
  }

  async #open(link: RedisLink): Promise<void> {
    await link.connect()
    await this.#inspect((script, keys, args) => evaluate(link, script, keys, args))
  }

  async #send(
    { link, opened }: Session,
    script: RedisScript,
    keys: readonly string[],
    args: readonly RedisArgument[],
  ): Promise<RedisReply> {
    await opened
    return evaluate(link, script, keys, args)
  }

  #drop(session: Session, fault: unknown): void {
    // All that waited on it come here, the first with the reason.
    if (this.#session !== session) return
    this.#session = undefined
    session.fault = fault
    try {
      session.link.destroy()
    } catch {
      // It was gone already.
    }
  }
}

async function evaluate(
  link: RedisLink,
  { text, sha }: RedisScript,
  keys: readonly string[],
  args: readonly RedisArgument[],
): Promise<RedisReply> {
  const [key = ''] = keys
  const rest = [String(keys.length), ...keys, ...args.map(spelled)]
  try {
    return (await link.send(key, ['EVALSHA', sha, ...rest])) as RedisReply
  } catch (error) {
    // The server has not seen the script since it was started: nothing of it has run.
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
    return (await link.send(key, ['EVAL', text, ...rest])) as RedisReply
  }
}

function spelled(argument: RedisArgument): string | Buffer {
  return typeof argument === 'number' ? String(argument) : argument
}

/** Whether the server has answered, if with an error: its replies begin with a code in capitals. */
function isReply(error: unknown): boolean {
  return error instanceof Error && /^[A-Z][A-Z_]+ /.test(error.message)
}

/** After a fail-over the old master says so; only a new connection finds the new one. */
function isDemoted(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('READONLY')
}
