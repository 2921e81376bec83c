/** A port for a server that has to be found again after it was killed. */

import { createServer } from 'node:net'

/** In this process. */
const given = new Set<number>()

/** From a node of a Redis Cluster to its second port, at which it hears the other nodes. */
const BUS = 10_000

/**
 * Below those that the kernel hands out for outgoing connections, as is the one that a node of a
 * Redis Cluster takes besides: nobody takes it meanwhile, or holds it for a minute after he has
 * hung up. Another one each time.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 12_000 + Math.floor(BUS * Math.random())
    if (given.has(port) || !(await isFree(port)) || !(await isFree(port + BUS))) continue
    given.add(port)
    return port
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
