import { expect, it } from 'vitest'
import { RedisConnection, script } from '../../../src/storage/redis/redis-connection.ts'
import type { NodeRedisClient } from '../../../src/storage/redis/redis-database.ts'

/** A client that makes connections, and what became of them. */
class Client implements NodeRedisClient {
  readonly made: Client[]
  readonly options = undefined
  isReady = true
  destroyed = 0

  constructor(made: Client[] = []) {
    this.made = made
  }

  duplicate(): Client {
    const own = new Client(this.made)
    this.made.push(own)
    return own
  }

  on(): this {
    return this
  }

  async connect(): Promise<void> {}

  async sendCommand(): Promise<unknown> {
    return 'OK'
  }

  destroy(): void {
    this.destroyed += 1
  }
}

it('a connection that was lost unused is destroyed when the next one opens', async () => {
  const client = new Client()
  const connection = new RedisConnection(client, 1000, async () => {})
  const run = () => connection.run(script('return 1'), [], [])
  await run()
  await run()
  expect(client.made).toHaveLength(1)
  const [first] = client.made
  if (first !== undefined) first.isReady = false
  await run()
  expect(client.made.map(({ destroyed }) => destroyed)).toEqual([1, 0])
  await connection.close()
  expect(client.made.map(({ destroyed }) => destroyed)).toEqual([1, 1])
})
