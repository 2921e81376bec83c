import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { StoreUnavailableError, WriteGuard } from 'writefence'
import { PostgresFenceStore, PostgresLeaseStore } from 'writefence/postgres'

/** A message of PostgreSQL's protocol. */
function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

// What a client reads at once from a server that is shut down as it lets the client in.
const LET_IN = message('R', Buffer.alloc(4))
const READY = message('Z', Buffer.from('I'))
const SHUT_DOWN = message('E', Buffer.from('SFATAL\0C57P01\0Mterminating connection\0\0'))

async function poolOnDyingServer(): Promise<pg.Pool> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(Buffer.concat([LET_IN, READY, SHUT_DOWN])))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const pool = new pg.Pool({ host: '127.0.0.1', port, user: 'nobody', database: 'none' })
  pool.on('error', () => {})
  onTestFinished(async () => {
    await pool.end()
    server.close()
  })
  return pool
}

/*
 * 1. The server accepts a connection, and ends it: both are in one packet.
 * 2. The pool reads the first, and hands the client out: from here on the pool does not hear it.
 * 3. The pool's driver reads the second, before whoever asked for the client has had a turn, and
 *    tells of it: an `error` event without a listener ends the process, the destination with it.
 */
it('a connection that is lost as it is handed out ends the write, not the process', async () => {
  const pool = await poolOnDyingServer()
  const guard = new WriteGuard(new PostgresFenceStore(pool))
  const leases = new PostgresLeaseStore(pool)
  const token = { jobId: 'job', generation: 1 }
  const write = guard.write({ token, operationId: 'x' }, () => 'never')
  await expect(write).rejects.toBeInstanceOf(StoreUnavailableError)
  const claim = leases.claim({ jobId: 'job', owner: 'worker', ttlMs: 1_000 })
  await expect(claim).rejects.toBeInstanceOf(StoreUnavailableError)
  expect([pool.totalCount, pool.waitingCount]).toEqual([0, 0])
})

it('a pool that knows promises only will do', async () => {
  const cause = new Error('nothing to hand out')
  const pool = { connect: () => Promise.reject(cause) }
  const claim = new PostgresLeaseStore(pool).claim({ jobId: 'job', owner: 'worker', ttlMs: 1_000 })
  await expect(claim).rejects.toMatchObject({ code: 'store_unavailable', cause })
})
