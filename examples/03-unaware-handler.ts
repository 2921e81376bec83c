/**
 * A handler that knows nothing of writefence, guarded from outside (`protect: 'handler'`): it keeps
 * its own storage, which is not the guard's. The guard reserves the operation before the handler
 * runs, and records its answer afterwards.
 *
 * It is the weaker form: a crash between the two leaves an operation whose outcome is not known.
 * The guard then says so (`outcome_unknown`) instead of running it again.
 */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { WriteGuard } from 'writefence'
import { fencing, fencingErrors } from 'writefence/express'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'

const mails: string[] = []

const guard = new WriteGuard(new SqliteFenceStore(openSqlite(':memory:')))
const app = express()
app.use(express.json())
// The job is taken from the route: a token for another job is refused.
const jobId = (req: express.Request) => `newsletter-${req.params.month}`
app.post('/newsletters/:month', fencing(guard, { protect: 'handler', jobId }), (req, res) => {
  if (typeof req.body.to !== 'string') {
    res.status(400).json({ error: 'to is missing' })
    return
  }
  mails.push(req.body.to)
  res.status(202).json({ number: mails.length })
})
app.use(fencingErrors())

const server = app.listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo

async function send(generation: number, key: string, body: object) {
  const response = await fetch(`http://127.0.0.1:${port}/newsletters/2026-11`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'Fencing-Token': `${generation};lease="lease-of-${generation}"`,
      'Idempotency-Key': key,
    },
    body: JSON.stringify(body),
  })
  const [verdict] = response.headers.get('Fencing-Verdict')?.split(';') ?? []
  return { status: response.status, verdict, body: await response.json() }
}

const first = await send(1, 'mail-alice', { to: 'alice' })
assert.deepEqual(first, { status: 202, verdict: 'applied', body: { number: 1 } })

// A retry gets the recorded answer: its status, its body, and the headers that describe the body
// (not its cookies). The handler is not called.
const again = await send(1, 'mail-alice', { to: 'alice' })
assert.deepEqual(again, { status: 202, verdict: 'replayed', body: { number: 1 } })

// A 4xx says that nothing was done: the operation may be tried again, as a better one.
assert.equal((await send(1, 'mail-bob', {})).status, 400)
assert.equal((await send(1, 'mail-bob', { to: 'bob' })).verdict, 'applied')

// A new holder comes, and an old one is late.
assert.equal((await send(2, 'mail-carol', { to: 'carol' })).verdict, 'applied')
assert.equal((await send(1, 'mail-dave', { to: 'dave' })).verdict, 'stale')

assert.deepEqual(mails, ['alice', 'bob', 'carol'])
server.close()
