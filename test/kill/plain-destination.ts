/**
 * A destination that shares no code with the package, and has the fault that it is told to have.
 * With none it is in order, which shows that a finding is due to the fault.
 */

import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { endWithParent, listen, taskOf } from './child.ts'
import type { DestinationTask } from './tasks.ts'

interface Fence {
  readonly generation: number
  readonly lease: string
}

interface Asked extends Fence {
  readonly job: string
  readonly operation: string
}

interface Verdict {
  readonly status: number
  readonly word: string
  readonly highest: number
  readonly nonce?: string
}

const { where, fault } = taskOf<DestinationTask>()
// Long enough for a kill to fall into it, short enough that hardly any retry does.
const GAP_MS = 5

const db = new Database(`${where}/bank.db`)
db.pragma('journal_mode = WAL')
db.pragma('synchronous = FULL')
db.exec(`CREATE TABLE IF NOT EXISTS fences (job TEXT PRIMARY KEY, generation INTEGER, lease TEXT);
  CREATE TABLE IF NOT EXISTS records (job TEXT, operation TEXT, nonce TEXT,
    PRIMARY KEY (job, operation))`)
const fenceOf = db.prepare('SELECT generation, lease FROM fences WHERE job = ?')
const putFence = db.prepare('INSERT OR REPLACE INTO fences VALUES (?, ?, ?)')
const recordOf = db.prepare('SELECT nonce FROM records WHERE job = ? AND operation = ?')
const putRecord = db.prepare('INSERT INTO records VALUES (?, ?, ?)')
const insert = db.prepare(
  'INSERT INTO effects (job, operation, generation, lease, nonce) VALUES (?, ?, ?, ?, ?)',
)
const count = db.prepare('SELECT count(*) AS done FROM effects WHERE job = ?')
const inMemory = { fences: new Map<string, Fence>(), records: new Map<string, string>() }
const running = new Set<string>()

/** Refuses what is older, and remembers what is not. */
function admit({ job, generation, lease }: Asked): Verdict | undefined {
  if (fault === 'no-fence') return undefined
  const kept = inMemory.fences.get(job) ?? { generation: 0, lease }
  const fence = fault === 'memory-fence' ? kept : ((fenceOf.get(job) as Fence | undefined) ?? kept)
  const highest = fence.generation
  if (generation < highest) return { status: 412, word: 'stale', highest }
  if (generation === highest && lease !== fence.lease) {
    return { status: 409, word: 'conflict', highest }
  }
  inMemory.fences.set(job, { generation, lease })
  if (generation > highest) putFence.run(job, generation, lease)
  return undefined
}

function known({ job, operation, generation: highest }: Asked): Verdict | undefined {
  const key = `${job} ${operation}`
  if (running.has(key)) return { status: 409, word: 'in_flight', highest }
  const kept = recordOf.get(job, operation) as { nonce: string } | undefined
  const nonce = fault === 'memory-records' ? inMemory.records.get(key) : kept?.nonce
  return nonce === undefined ? undefined : { status: 200, word: 'replayed', highest, nonce }
}

function apply(asked: Asked, nonce: string): void {
  insert.run(asked.job, asked.operation, asked.generation, asked.lease, nonce)
}

function remember({ job, operation }: Asked, nonce: string): void {
  inMemory.records.set(`${job} ${operation}`, nonce)
  if (fault !== 'memory-records') putRecord.run(job, operation, nonce)
}

async function write(asked: Asked, answer: (verdict: Verdict) => void): Promise<void> {
  const nonce = randomUUID()
  const applied = { status: 200, word: 'applied', highest: asked.generation, nonce }
  const parts = fault === 'answers-early' || fault === 'records-later'
  const refused = db.transaction(() => {
    const verdict = admit(asked) ?? known(asked)
    if (verdict !== undefined || fault === 'answers-early') return verdict
    apply(asked, nonce)
    if (!parts) remember(asked, nonce)
    return undefined
  })
  const verdict = refused.immediate()
  if (verdict !== undefined) return answer(verdict)
  if (!parts) return answer(applied)
  const key = `${asked.job} ${asked.operation}`
  running.add(key)
  if (fault === 'answers-early') answer(applied)
  await sleep(GAP_MS)
  try {
    db.transaction(() => {
      if (fault === 'answers-early') apply(asked, nonce)
      remember(asked, nonce)
    }).immediate()
  } finally {
    running.delete(key)
  }
  if (fault === 'records-later') answer(applied)
}

function read(req: IncomingMessage): Asked {
  const [, , job = ''] = (req.url ?? '').split('/')
  const { 'fencing-token': token = '', 'idempotency-key': key = '' } = req.headers
  const [, generation = 0, lease = ''] = /^(\d+);.*lease="([^"]*)"$/.exec(String(token)) ?? []
  const operation = String(key).replaceAll('"', '')
  return { job, operation, generation: Number(generation), lease }
}

function send(res: ServerResponse, { status, word, highest }: Verdict, body: object): void {
  const problem = { code: word, retryable: word === 'in_flight', highestGeneration: highest }
  const type = status < 400 ? 'application/json' : 'application/problem+json'
  res.writeHead(status, { 'Content-Type': type, 'Fencing-Verdict': `${word};highest=${highest}` })
  res.end(JSON.stringify(status < 400 ? body : problem))
}

/** An advance, or a look at the fence or at what was done. */
function look(req: IncomingMessage, res: ServerResponse, asked: Asked): void {
  const refused = req.url?.startsWith('/fences/') && req.method === 'GET' ? undefined : admit(asked)
  const { generation: highest } = (fenceOf.get(asked.job) as Fence | undefined) ?? asked
  const older = { inFlight: 0, overdue: 0 }
  const done = count.get(asked.job) as object
  const body = { ...done, highestGeneration: highest, sealed: false, older }
  send(res, refused ?? { status: 200, word: 'passed', highest }, body)
}

async function receive(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const asked = read(req)
  try {
    if (!req.url?.endsWith('/write')) return look(req, res, asked)
    await write(asked, (verdict) => send(res, verdict, { nonce: verdict.nonce }))
  } catch {
    const { generation: highest } = asked
    if (!res.headersSent) send(res, { status: 503, word: 'store_unavailable', highest }, {})
  }
}

endWithParent()
listen((req, res) => void receive(req, res))
