/** The same through a real server, byte by byte: documented answers only, and nothing else done. */

import { once } from 'node:events'
import type { Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import express, { type Request } from 'express'
import { requestCodes, verdictCodes } from '../../src/errors.ts'
import { fenceRoutes, fencing, fencingErrors, leaseRoutes } from '../../src/express/index.ts'
import { WriteGuard } from '../../src/guard/write-guard.ts'
import { openSqlite, SqliteFenceStore, SqliteLeaseStore } from '../../src/storage/sqlite/index.ts'
import { problemStatus } from '../../src/wire/problem.ts'
import { anyMessage, keyText, mangle, pick, type Random, target, tokenText } from './inputs.ts'

const AT_ONCE = 16
const PATIENCE_MS = 10_000

/** Sends that many requests; each line says what was answered to what. */
export async function fuzzServer(random: Random, requests: number): Promise<string[]> {
  const db = openSqlite(':memory:')
  db.exec('CREATE TABLE effects (operation TEXT)')
  const server = guarded(db).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const violations: string[] = []
  const rejected = (error: unknown) => void violations.push(`unhandled: ${error}`)
  process.on('unhandledRejection', rejected)
  let applied = 0
  let left = requests
  const client = async () => {
    while (left > 0 && violations.length < 20) {
      left -= 1
      const sent = spell(random)
      const answer = await exchange(server, sent)
      const wrong = problemIn(answer)
      if (wrong !== undefined) violations.push(`${wrong}: ${JSON.stringify(sent)}\n  ${answer}`)
      if (/^fencing-verdict: applied/im.test(answer)) applied += 1
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, client))
  const { done } = db.prepare('SELECT count(*) AS done FROM effects').get() as { done: number }
  if (done !== applied) violations.push(`${applied} answers say applied, ${done} effects are there`)
  if (applied === 0) violations.push('nothing was let in: the inputs are no near misses')
  process.off('unhandledRejection', rejected)
  server.close().closeAllConnections()
  db.close()
  return violations
}

function guarded(db: ReturnType<typeof openSqlite>) {
  const guard = new WriteGuard(new SqliteFenceStore(db))
  const insert = db.prepare('INSERT INTO effects (operation) VALUES (?)')
  const jobId = (req: Request) => String(req.params.job)
  const written = fencing(guard)
  const handled = fencing(guard, { protect: 'handler', jobId })
  const app = express()
  app.use(leaseRoutes(new SqliteLeaseStore(db), { authorize: 'none' }))
  app.use(fenceRoutes(guard, { authorize: 'none' }))
  app.use(express.json({ limit: '10kb' }))
  app.post('/write', written, async (req, res) => {
    const { operationId } = written.of(req)
    await written.of(req).write(() => void insert.run(operationId))
    res.status(201).json({ done: true })
  })
  app.post('/jobs/:job/handle', handled, (_req, res) => {
    insert.run('handled')
    res.status(201).json({ done: true })
  })
  app.use(fencingErrors())
  // The parser's own errors (a body that is no JSON) are the application's to answer.
  app.use((error: { status?: number }, _req: unknown, res: express.Response, _next: unknown) => {
    res.status(error.status ?? 500).json({ code: 'application' })
  })
  return app
}

function spell(random: Random): string {
  const path = pick(random, [
    () => '/write',
    () => '/jobs/job/handle',
    () => mangle(random, '/jobs/job/handle').replace(/[^!-~]/g, ''),
    () => target(random).replace(/[^!-~]/g, ''),
  ])()
  const body =
    random() < 0.8 ? safeJson(anyMessage(random)) : mangle(random, '{"amount":100,"to":"x"}')
  const lines = [
    `${pick(random, ['POST', 'POST', 'POST', 'GET', 'PUT'])} ${path || '/'} HTTP/1.1`,
    'Host: 127.0.0.1',
    'Connection: close',
    `Content-Type: ${pick(random, ['application/json', 'application/json', 'text/plain', ''])}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  if (random() < 0.9) lines.push(`Fencing-Token: ${oneLine(tokenText(random))}`)
  if (random() < 0.9) lines.push(`Idempotency-Key: ${oneLine(keyText(random))}`)
  if (random() < 0.05) lines.push('Fencing-Token: 9')
  if (random() < 0.05) lines.push('Fencing-Verdict: applied;highest=1')
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}

/** Sends bytes, and returns all that comes back until the connection ends. */
async function exchange(server: Server, sent: string): Promise<string> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error('no answer in time')))
  socket.on('error', () => {})
  socket.write(sent)
  return text(socket).catch((error: unknown) => `no answer: ${error}`)
}

const CODES: readonly string[] = [...verdictCodes, ...requestCodes, 'store_unavailable']
/** Of the application and of Node: nothing there, bad HTTP, a body too large or not understood. */
const OTHERS = [200, 201, 404, 400, 409, 412, 413, 415, 431]

function problemIn(answer: string): string | undefined {
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1])
  if (Number.isNaN(status)) return 'no answer'
  const [, body = ''] = answer.split('\r\n\r\n')
  if (!/^content-type: application\/problem\+json/im.test(answer)) {
    return OTHERS.includes(status) ? undefined : `status ${status}`
  }
  const { code } = JSON.parse(body) as { code: string }
  if (!CODES.includes(code)) return `code ${code}`
  return problemStatus(code as never) === status ? undefined : `${code} with status ${status}`
}

const oneLine = (value: string) => value.replace(/[\r\n]/g, '')

function safeJson(value: unknown): string {
  return JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? String(each) : each)) ?? ''
}
