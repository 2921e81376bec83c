/**
 * The lock of ZooKeeper's recipes: https://zookeeper.apache.org/doc/r3.9.3/recipes.html
 * Every client enters a queue by an ephemeral sequential node; the first one has the lock.
 */

import { once } from 'node:events'
import { connect as dial } from 'node:net'
import { type Client, CreateMode, createClient, type Stat } from 'node-zookeeper-client'
import type { FencingToken } from 'writefence'

/** A place in the queue: a node of this session. */
export interface Place {
  readonly parent: string
  readonly name: string
  readonly stat: Stat
}

/** The token of a holder. `leaseId`: a random one, made by the holder for this node. */
export function tokenOfZooKeeper(
  jobId: string,
  stat: Pick<Stat, 'czxid'>,
  leaseId: string,
): FencingToken {
  return { jobId, generation: Number(stat.czxid.readBigInt64BE()), leaseId }
}

/** One server, as host:port. */
export const address = process.env.ZOOKEEPER ?? '127.0.0.1:2181'

/** A session. The server chooses its time-out, as near to the asked one as it may. */
export async function connect(server = address, sessionTimeout = 10_000): Promise<Client> {
  // The client goes on trying where nobody listens.
  const [host, port] = server.split(':')
  const socket = dial(Number(port), host)
  await once(socket, 'connect')
  socket.destroy()

  const client = createClient(server, { sessionTimeout })
  const connected = once(client, 'connected', { signal: AbortSignal.timeout(10_000) })
  client.connect()
  try {
    await connected
  } catch (cause) {
    client.close()
    throw new Error('no answer within 10 s', { cause })
  }
  return client
}

/** Enters the queue. */
export async function enter(client: Client, parent: string): Promise<Place> {
  await ask((done) => client.mkdirp(parent, done))
  const prefix = `${parent}/lock-`
  const { EPHEMERAL_SEQUENTIAL } = CreateMode
  const path = await ask<string>((done) => client.create(prefix, EPHEMERAL_SEQUENTIAL, done))
  const stat = await ask<Stat | null>((done) => client.exists(path, done))
  if (stat === null) throw new Error(`the session ended, and ${path} with it`)
  return { parent, name: path.slice(parent.length + 1), stat }
}

/** Resolves once nobody is before this place. */
export async function reachFront(client: Client, { parent, name }: Place): Promise<void> {
  for (;;) {
    const names = await ask<string[]>((done) => client.getChildren(parent, done))
    const index = names.sort().indexOf(name)
    if (index < 0) throw new Error(`the session ended, and ${name} with it`)
    const before = names[index - 1]
    if (before === undefined) return
    await new Promise<void>((resolve, reject) => {
      client.exists(
        `${parent}/${before}`,
        () => resolve(),
        (error, stat) => {
          if (error) reject(error)
          else if (stat === null) resolve()
        },
      )
    })
  }
}

/** One call of the client as a promise. */
export function ask<T = unknown>(
  call: (done: (error: unknown, value?: T) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    call((error, value) => (error ? reject(error) : resolve(value as T)))
  })
}
