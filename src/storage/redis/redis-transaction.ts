/** What the callback of a write is given: commands for the commit, and reads that must hold. */

import type { RedisArgument, RedisReply } from './redis-database.ts'

/** A command of the transaction was answered with an error, as ioredis and node-redis name it. */
export class RedisReplyError extends Error {
  override readonly name = 'ReplyError'
  /** The name of the command. */
  readonly command: string

  constructor(command: string, reply: string) {
    super(reply)
    this.command = command
  }
}

/**
 * The effect of a write on Redis. Nothing is changed while the callback runs: `call` queues, and
 * one script then checks fence and reads, records the operation, and runs the queue.
 */
export interface RedisTransaction {
  /** The prefix of the store in braces: on a Cluster, what the keys of the effect begin with. */
  readonly hashTag: string
  /**
   * Queues a command for the commit, in order. Its reply is not seen. If the first one fails,
   * nothing has happened and its error is thrown as {@link RedisReplyError}; if a later one does,
   * those before it have taken place, and the write is refused as `outcome_unknown`.
   * @throws TypeError for a command that a script cannot run, or once the callback has ended
   */
  call(command: string, ...args: RedisArgument[]): void
  /**
   * Reads now, with a command that writes nothing. The write is committed only if the same command
   * still has the same reply then; where it has not, the callback runs again. What is queued is not
   * seen. Text is read as UTF-8.
   * @throws RedisReplyError for a command that fails or would write, StoreUnavailableError
   */
  read(command: string, ...args: RedisArgument[]): Promise<RedisReply>
}

/** A read of the callback, with a digest of its reply. */
export interface RedisRead {
  readonly command: readonly RedisArgument[]
  readonly digest: string
}

export type ReadNow = (
  command: readonly RedisArgument[],
) => Promise<{ readonly reply: RedisReply; readonly digest: string }>

// Lua unpacks at most 8000 values.
const MAX_ARGUMENTS = 4000

/** Redis would run these, and the record of the operation would go elsewhere, or go. */
const FORBIDDEN = /^(SELECT|SWAPDB|FLUSHDB|FLUSHALL)$/i

/** Keeps what one run of a callback asks for. */
export class RedisRecorder implements RedisTransaction {
  readonly hashTag: string
  readonly calls: (readonly RedisArgument[])[] = []
  readonly reads: RedisRead[] = []
  readonly #readNow: ReadNow
  #ended = false

  constructor(hashTag: string, readNow: ReadNow) {
    this.hashTag = hashTag
    this.#readNow = readNow
  }

  call(command: string, ...args: RedisArgument[]): void {
    this.#assertOpen()
    this.calls.push(checkCommand(command, args))
  }

  async read(command: string, ...args: RedisArgument[]): Promise<RedisReply> {
    this.#assertOpen()
    const checked = checkCommand(command, args)
    const { reply, digest } = await this.#readNow(checked)
    this.reads.push({ command: checked, digest })
    return reply
  }

  /** What comes from here on would not be part of the write. */
  end(): void {
    this.#ended = true
  }

  #assertOpen(): void {
    if (!this.#ended) return
    throw new TypeError('the callback has ended: await what it does with its transaction')
  }
}

function checkCommand(command: unknown, args: readonly unknown[]): RedisArgument[] {
  if (typeof command !== 'string' || !/^\w[\w.]*$/.test(command)) {
    throw new TypeError('command must be the name of a Redis command, its arguments apart')
  }
  if (FORBIDDEN.test(command)) throw new TypeError(`${command} cannot be part of a write`)
  if (args.length > MAX_ARGUMENTS) {
    throw new RangeError(`a command may have at most ${MAX_ARGUMENTS} arguments`)
  }
  return [command, ...args.map(checkArgument)]
}

function checkArgument(value: unknown): RedisArgument {
  if (typeof value === 'string') return value
  // A copy: the buffer may be written to before the commit.
  if (value instanceof Uint8Array) return Buffer.from(value)
  if (typeof value === 'number' && Number.isFinite(value)) return value
  throw new TypeError('an argument must be a string, a finite number or a Buffer')
}
