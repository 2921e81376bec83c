import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { expect, it, onTestFinished } from 'vitest'
import { WriteGuard } from 'writefence'
import { fenceRoutes } from 'writefence/express'
import { httpDestination } from 'writefence/http'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'

async function setUp() {
  const guard = new WriteGuard(new SqliteFenceStore(openSqlite(':memory:')))
  const app = express().use('/api', fenceRoutes(guard, { authorize: 'none' }))
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close().closeAllConnections())
  const { port } = server.address() as AddressInfo
  return { guard, place: httpDestination(`http://127.0.0.1:${port}/api`) }
}

const token = (generation: number) => ({ jobId: 'job', generation, leaseId: `l${generation}` })

it('a destination is advanced and sealed from afar', async () => {
  const { guard, place } = await setUp()
  expect(await place.advance(token(7))).toMatchObject({ highestGeneration: 7, sealed: false })
  expect(await place.seal(token(8))).toMatchObject({ highestGeneration: 8, sealed: true })
  expect(await guard.inspect('job')).toMatchObject({ highestGeneration: 8, sealed: true })
})

it.each(['advance', 'seal'] as const)('%s refuses a token that is not the newest', async (verb) => {
  const { guard, place } = await setUp()
  await guard.advance(token(9))
  await expect(place[verb](token(8))).rejects.toMatchObject({ code: 'stale', highestGeneration: 9 })
  const other = { ...token(9), leaseId: 'another' }
  await expect(place[verb](other)).rejects.toMatchObject({ code: 'conflict' })
  expect((await guard.inspect('job'))?.sealed).toBe(false)
})
