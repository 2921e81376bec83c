/** What the stores use of ioredis and of node-redis, described structurally. */

import { StoreUnavailableError } from '../../errors.ts'

/** A part of a command; numbers are sent in decimal digits. */
export type RedisArgument = string | number | Buffer
/** A reply as a script gives it back: text is read as UTF-8. */
export type RedisReply = string | number | null | readonly RedisReply[]

interface Connectable {
  duplicate(...overrides: never[]): unknown
  connect(): Promise<unknown>
  on(event: 'error', listener: (error: Error) => void): unknown
}

/** ioredis: a `Redis` or a `Cluster`. */
export interface IoredisClient extends Connectable {
  readonly isCluster: boolean
  readonly status: string
  call(command: string, args: RedisArgument[]): Promise<unknown>
  disconnect(): void
}

/** node-redis: what `createClient` returns. */
export interface NodeRedisClient extends Connectable {
  readonly isReady: boolean
  readonly options: object | undefined
  sendCommand(args: (string | Buffer)[]): Promise<unknown>
  destroy(): unknown
}

/** node-redis: what `createCluster` returns. */
export interface NodeRedisCluster extends Connectable {
  readonly isOpen: boolean
  readonly slots: object
  sendCommand(key: string, isReadonly: boolean, args: (string | Buffer)[]): Promise<unknown>
  destroy(): unknown
}

/** A client of either driver. The stores only look how it connects, and connect themselves. */
export type RedisClient = IoredisClient | NodeRedisClient | NodeRedisCluster

/** Where and how a store keeps its keys. */
export interface RedisStoreOptions {
  /** In place of the server's clock, for tests: epoch milliseconds. */
  readonly now?: (() => number) | undefined
  /**
   * What all keys of the store begin with, in braces; `'writefence'` unless told. On a Cluster
   * it is their hash tag: keys of the same `{prefix}` are in one slot with the fences.
   */
  readonly prefix?: string | undefined
  /** How long one round trip may take, connecting included, in milliseconds; 5000 unless told. */
  readonly timeoutMs?: number | undefined
}

/** One connection that belongs to a store, ended for good when it is lost. */
export interface RedisLink {
  readonly isReady: boolean
  connect(): Promise<void>
  /** `key` says where a Cluster has the slot. */
  send(key: string, command: readonly (string | Buffer)[]): Promise<unknown>
  destroy(): void
}

/** @throws TypeError where the client is neither of ioredis nor of node-redis */
export function assertClient(client: unknown): asserts client is RedisClient {
  const known =
    typeof client === 'object' &&
    client !== null &&
    'duplicate' in client &&
    ('isCluster' in client || 'slots' in client || 'isReady' in client)
  // A sentinel of node-redis has all of it, and sends again what it has lost the answer to.
  if (known && ('call' in client || 'sendCommand' in client) && !('acquire' in client)) return
  throw new TypeError(
    'client must be a Redis or Cluster of ioredis, or what createClient or createCluster of' +
      ' node-redis returns (not a pool, not a sentinel)',
  )
}

/**
 * A connection like the user's, but one that never reconnects: what was sent is not sent twice, and
 * what was not must not go out after its caller was told that it failed.
 */
export function linkOf(client: RedisClient, timeoutMs: number): RedisLink {
  if ('isCluster' in client) return linkOfIoredis(client, timeoutMs)
  return 'slots' in client ? linkOfNodeCluster(client) : linkOfNode(client, timeoutMs)
}

function linkOfIoredis(client: IoredisClient, timeoutMs: number): RedisLink {
  const shared = { lazyConnect: true, keyPrefix: '' }
  const single = {
    retryStrategy: null,
    reconnectOnError: null,
    connectTimeout: timeoutMs,
    commandTimeout: undefined,
    stringNumbers: false,
    replyMapping: 'legacy',
  }
  const redisOptions = { ...single, sentinelRetryStrategy: null }
  const cluster = { clusterRetryStrategy: null, retryDelayOnFailover: 0, scaleReads: 'master' }
  const overrides = client.isCluster
    ? [[], { ...shared, ...cluster, redisOptions }]
    : [{ ...shared, ...redisOptions }]
  const own = client.duplicate(...(overrides as never[])) as IoredisClient
  return {
    get isReady() {
      return own.status === 'ready'
    },
    connect: () => connected(own),
    send: (_, [command, ...args]) => own.call(String(command), args),
    destroy: () => own.disconnect(),
  }
}

function linkOfNode(client: NodeRedisClient, timeoutMs: number): RedisLink {
  const { socket } = { socket: {}, ...client.options }
  const overrides = {
    socket: { ...socket, connectTimeout: timeoutMs, reconnectStrategy: false },
    ...PLAIN,
  }
  const own = client.duplicate(...([overrides] as never[])) as NodeRedisClient
  return {
    get isReady() {
      return own.isReady
    },
    connect: () => connected(own),
    send: (_, command) => own.sendCommand([...command]),
    destroy: () => own.destroy(),
  }
}

function linkOfNodeCluster(client: NodeRedisCluster): RedisLink {
  const overrides = { useReplicas: false, ...PLAIN }
  const own = client.duplicate(...([overrides] as never[])) as NodeRedisCluster
  let connecting = Promise.resolve()
  return {
    get isReady() {
      return own.isOpen
    },
    connect() {
      connecting = connected(own)
      return connecting
    },
    send: (key, command) => own.sendCommand(key, false, [...command]),
    destroy() {
      own.destroy()
      // Where it was still looking for its nodes, it connects to them all the same.
      const again = () => own.destroy()
      connecting.then(again, again).catch(() => {})
    },
  }
}

/** Options of node-redis that change what comes back, or share a cache with the user's client. */
const PLAIN = { commandOptions: {}, clientSideCache: undefined }

/**
 * Connects. Why it failed is often said by an event only, and an event that nobody listens to would
 * end the process.
 */
async function connected(own: Connectable): Promise<void> {
  let told: Error | undefined
  own.on('error', (error) => {
    told ??= error
  })
  try {
    await own.connect()
  } catch (error) {
    throw told ?? error
  }
}

export function unavailable(error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  const text = error instanceof Error ? error.message : String(error)
  return new StoreUnavailableError(`Redis: ${text}`, { cause: error })
}
