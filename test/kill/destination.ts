/**
 * A destination that is killed: a guarded write, an unaware handler, and an effect at a third
 * system. What a predecessor has left unsettled is found out and resolved, as operators would.
 */

import express, { type Request } from 'express'
import { fenceRoutes, fencing, fencingErrors } from '../../src/express/index.ts'
import { WriteGuard } from '../../src/guard/write-guard.ts'
import { openSqlite, SqliteFenceStore } from '../../src/storage/sqlite/index.ts'

const [path = '', port = '0', third = ''] = process.argv.slice(2)
const db = openSqlite(path)
db.exec(`CREATE TABLE IF NOT EXISTS effects (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT, operation TEXT, generation INTEGER, lease TEXT)`)
const insert = db.prepare(
  'INSERT INTO effects (job, operation, generation, lease) VALUES (?, ?, ?, ?) RETURNING seq',
)
const find = db.prepare('SELECT seq FROM effects WHERE job = ? AND operation = ?')
const last = db.prepare('SELECT count(*) AS done FROM effects WHERE job = ?')

const guard = new WriteGuard(new SqliteFenceStore(db), { deadlineMs: 800 })
const jobId = (req: Request) => String(req.params.job)
const written = fencing(guard, { jobId })
const handled = fencing(guard, { jobId, protect: 'handler' })

const app = express().use(express.json())
app.get('/jobs/:job/done', written, (req, res) => {
  res.json(last.get(req.params.job))
})
app.post('/jobs/:job/write', written, async (req, res) => {
  const { token, operationId } = written.of(req)
  const { result } = await written.of(req).write(() => {
    return insert.get(req.params.job, operationId, token.generation, token.leaseId) as object
  })
  res.json(result)
})
app.post('/jobs/:job/handle', handled, (req, res) => {
  const { token, operationId } = handled.of(req)
  res.json(insert.get(req.params.job, operationId, token.generation, token.leaseId))
})
app.post('/jobs/:job/elsewhere', written, async (req, res) => {
  const fence = written.of(req)
  const { result } = await fence.effect(async ({ token, operationId }) => {
    const body = JSON.stringify({ ...token, operationId })
    const answer = await fetch(`${third}/effects`, { method: 'POST', body })
    if (!answer.ok) throw new Error(`the third system answered ${answer.status}`)
    return (await answer.json()) as { seq: number }
  })
  res.json(result)
})
app.use(fenceRoutes(guard, { authorize: 'none' }))
app.use(fencingErrors())

// Whoever began these is dead: once they are overdue, what is there is all that there will be.
const left = new Set((await guard.unsettled({ limit: 1000 })).map((each) => keyOf(each)))
const settle = async () => {
  for (const { jobId: job, operationId, status } of await guard.unsettled({ limit: 1000 })) {
    const ended = status === 'unknown'
    if (!ended && (status !== 'overdue' || !left.has(keyOf({ jobId: job, operationId })))) continue
    const result = operationId.startsWith('elsewhere')
      ? await (await fetch(`${third}/effects/${job}/${operationId}`)).json()
      : (find.get(job, operationId) ?? null)
    const resolution =
      result === null
        ? ({ status: 'not_applied' } as const)
        : { status: 'applied' as const, result }
    await guard.resolve({ jobId: job, operationId }, resolution)
  }
}
setInterval(() => void settle().catch(() => {}), 100).unref()

const server = app.listen(Number(port), '127.0.0.1', () => {
  process.send?.({ port: (server.address() as { port: number }).port })
})

function keyOf(operation: { jobId: string; operationId: string }): string {
  return JSON.stringify([operation.jobId, operation.operationId])
}
