import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openSqlite, SqliteLeaseStore } from 'writefence/sqlite'
import { root } from '../house/project.ts'
import { blocks, section } from './markdown.ts'

const [destination = ''] = blocks(section('README.md', '## The destination'), 'ts')
const [worker = ''] = blocks(section('README.md', '## The worker'), 'ts')
const PORT = /\b3000\b/g

const folder = mkdtempSync(join(tmpdir(), 'writefence-readme-'))
const running: ChildProcess[] = []
let url = ''

/** Runs a block in a process of its own, as printed but for the port, and hears what `tells` is. */
async function run(file: string, block: string, port: string, tells: string): Promise<unknown> {
  expect(block.match(PORT)).toHaveLength(1)
  writeFileSync(join(folder, file), `${block.replace(PORT, port)}\n${tells}\n`)
  const child = fork(join(folder, file), {
    cwd: folder,
    execArgv: ['--import', 'tsx'],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  running.push(child)
  const said = child.stderr === null ? '' : text(child.stderr)
  const told = once(child, 'message').then(([message]: unknown[]) => message)
  const ended = once(child, 'disconnect').then(async () => {
    throw new Error(`${file} told nothing\n${await said}`)
  })
  return Promise.race([told, ended])
}

const runWorker = () =>
  run('worker.ts', worker, new URL(url).port, 'process.send?.(outcome)\nprocess.disconnect?.()')

/** The request that the worker sends, under another token. */
function pay(token: string, operationId = 'pay-alice'): Promise<Response> {
  return fetch(`${url}/accounts/alice/credits`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'Fencing-Token': token,
      'Idempotency-Key': operationId,
    },
    body: JSON.stringify({ amount: 100 }),
  })
}

function credits(): unknown[] {
  const db = openSqlite(join(folder, 'bank.db'))
  const rows = db.prepare('SELECT account, amount FROM credits').all()
  db.close()
  return rows
}

beforeAll(async () => {
  // What a project has that has installed the package: it is found by its names.
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'dir')
  const tsconfig = { extends: join(root, 'tsconfig.json') }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))

  const listening = "server.on('listening', () => process.send?.(server.address()))"
  const { port } = (await run('destination.ts', destination, '0', listening)) as { port: number }
  url = `http://127.0.0.1:${port}`

  // Six workers have had the job before: there are older tokens about.
  const db = openSqlite(join(folder, 'leases.db'))
  await new SqliteLeaseStore(db).raise('payroll-2026-11', 6)
  db.close()
}, 60_000)

afterAll(async () => {
  const gone = running
    .filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
    .map((child) => once(child, 'exit'))
  for (const child of running) child.kill('SIGKILL')
  await Promise.all(gone)
  rmSync(folder, { recursive: true, force: true })
})

describe('the destination and the worker of the README, as printed', () => {
  it('a write lands, once', { timeout: 60_000 }, async () => {
    expect(await runWorker()).toMatchObject({ status: 'completed', generation: 7 })
    expect(credits()).toEqual([{ account: 'alice', amount: 100 }])
    // The job is done: a second worker has nothing to do.
    expect(await runWorker()).toEqual({ status: 'already_completed' })
    expect(credits()).toEqual([{ account: 'alice', amount: 100 }])
  })

  it('a stale write is refused, whatever it is for', async () => {
    for (const operationId of ['pay-alice', 'pay-alice-again']) {
      const answer = await pay('6;job="payroll-2026-11";lease="an-older-one"', operationId)
      expect(answer.status).toBe(412)
      expect(answer.headers.get('Fencing-Verdict')).toBe('stale;highest=7')
      expect(await answer.json()).toMatchObject({
        code: 'stale',
        operationApplied: operationId === 'pay-alice',
      })
    }
    expect(credits()).toEqual([{ account: 'alice', amount: 100 }])
  })

  it("the next generation's retry gets the recorded answer", async () => {
    const answer = await pay('8;job="payroll-2026-11";lease="a-newer-one"')
    expect(answer.status).toBe(201)
    expect(answer.headers.get('Idempotent-Replayed')).toBe('true')
    expect(await answer.json()).toEqual({ account: 'alice', amount: 100 })
    expect(credits()).toEqual([{ account: 'alice', amount: 100 }])
  })
})
