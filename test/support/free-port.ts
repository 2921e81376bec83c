/** A port for a server that has to be found again after it was killed. */

import { createServer } from 'node:net'

/** In this process. */
const given = new Set<number>()

/**
 * Below those that the kernel hands out for outgoing connections: nobody takes it meanwhile.
 * Another one each time.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(10_000 * Math.random())
    if (given.has(port) || !(await isFree(port))) continue
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
