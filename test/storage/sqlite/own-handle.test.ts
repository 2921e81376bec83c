import { readFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import { expect, it } from 'vitest'
import { WriteGuard } from 'writefence'
import { openSqlite, SqliteFenceStore, SqliteLeaseStore } from 'writefence/sqlite'

const token = { jobId: 'job', generation: 1, leaseId: 'a' }

it("R109: the application's own handle serves both stores, beside its own tables", async () => {
  const db = new Database(':memory:')
  db.exec('CREATE TABLE mine (text TEXT)')
  const guard = new WriteGuard(new SqliteFenceStore(db))
  const leases = new SqliteLeaseStore(db)
  const claimed = await leases.claim({ jobId: 'job', owner: 'w', ttlMs: 1_000, leaseId: 'a' })
  expect(claimed).toMatchObject({ status: 'claimed', lease: { generation: 1 } })
  await guard.write({ token, operationId: 'x' }, (tx) => {
    expect(tx).toBe(db)
    tx.exec("INSERT INTO mine VALUES ('written')")
  })
  await guard.close()
  await leases.close()
  expect(db.prepare('SELECT text FROM mine').pluck().all()).toEqual(['written'])
})

it('R109: the docs warn of a second SQLite library on the file', () => {
  const page = readFileSync(new URL('../../../docs/storage.md', import.meta.url), 'utf8')
  expect(page).toMatch(/do not open the file with `node:sqlite`/)
})

it('R55: an earlier look at the fence decides nothing, the write asks again', async () => {
  const db = openSqlite(':memory:')
  const guard = new WriteGuard(new SqliteFenceStore(db))
  const early = await guard.judge({ token })
  expect(early.status).toBe('apply')
  await guard.advance({ ...token, generation: 2 })
  let runs = 0
  const write = guard.write({ token }, () => {
    runs += 1
  })
  await expect(write).rejects.toMatchObject({ code: 'stale', highestGeneration: 2 })
  expect(runs).toBe(0)
})

it('R94: pruning leaves what is in flight, and no record of what is over', async () => {
  const db = openSqlite(':memory:')
  const guard = new WriteGuard(new SqliteFenceStore(db))
  let settle = () => {}
  const running = new Promise<void>((resolve) => {
    settle = resolve
  })
  const begun = guard.effect({ token, operationId: 'running' }, () => running)
  const writes = Array.from({ length: 5_000 }, (_, index) =>
    guard.write({ token, operationId: `key-${index}` }, () => index),
  )
  await Promise.all(writes)
  const counts: number[] = []
  do counts.push((await guard.prune({ olderThanMs: 0, limit: 2_000 })).pruned)
  while (counts.at(-1) !== 0)
  expect(counts).toEqual([2_000, 2_000, 1_000, 0])
  const left = db.prepare('SELECT operation_id FROM writefence_operation').pluck().all()
  expect(left).toEqual(['running'])
  settle()
  await begun
})
