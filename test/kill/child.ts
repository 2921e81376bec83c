/** What every process of a run does. */

import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What it was told as it was started. */
export function taskOf<Task>(): Task {
  return JSON.parse(process.argv[2] ?? '') as Task
}

/** Nothing is left over, however the parent has ended. */
export function endWithParent(): void {
  process.once('disconnect', () => process.exit())
}

/** Tells the parent that it is up, and where. */
export function isUp(port: number): void {
  process.send?.({ port })
}

export function listen(app: RequestListener): void {
  const server = createServer(app)
  // A connection that ends by itself would be one more fault, and none that is meant.
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1', () => isUp((server.address() as AddressInfo).port))
}
