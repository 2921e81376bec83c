import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import express from 'express'
import { afterAll, describe, expect, it } from 'vitest'
import { WriteGuard } from 'writefence'
import { type ProbeOptions, probeDestination } from 'writefence/conformance'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'
import { type Credit, missingOf } from './express-destination.ts'
import { write } from './probing.ts'

const express4 = createRequire(import.meta.url)('express4') as typeof express

const folder = mkdtempSync(join(tmpdir(), 'writefence-probe-'))
const file = join(folder, 'db.sqlite')
afterAll(() => rmSync(folder, { recursive: true }))

async function open() {
  const db = openSqlite(file)
  db.exec('CREATE TABLE IF NOT EXISTS credits (job TEXT, operation TEXT)')
  const insert = db.prepare('INSERT INTO credits VALUES (?, ?)')
  const count = db.prepare<[string], number>('SELECT count(*) FROM credits WHERE job = ?').pluck()
  const unaware = ({ jobId, operationId }: Credit) => {
    insert.run(jobId, operationId)
    return { number: count.get(jobId) ?? 0 }
  }
  const within = (credit: Credit) => () => unaware(credit)
  return {
    guard: new WriteGuard(new SqliteFenceStore(db)),
    within,
    unaware,
    close: () => db.close(),
  }
}

async function effects(jobId: string): Promise<string[]> {
  const db = openSqlite(file)
  const sql = 'SELECT operation FROM credits WHERE job = ? ORDER BY rowid'
  const found = db.prepare<[string], string>(sql).pluck().all(jobId)
  db.close()
  return found
}

describe.each([
  ['Express 5', express],
  ['Express 4', express4],
])('a destination on %s has every property', (_, framework) => {
  it.each(['write', 'handler'] as const)("protect: '%s'", async (protect) => {
    const fencing = { protect }
    expect(await missingOf({ open, effects, framework, fencing })).toEqual([])
  })

  it('but those that need a fingerprint, if the guard comes before the parser', async () => {
    const fencing = { protect: 'write', fingerprint: false } as const
    expect(await missingOf({ open, effects, framework, fencing, first: true })).toMatchObject([
      { property: 'advances_when_refusing', holds: false },
      { property: 'refuses_mismatch', holds: false },
    ])
  })
})

describe('what the probe cannot do', () => {
  const options: ProbeOptions = { baseUrl: 'http://127.0.0.1:1', write }

  it.each([
    ['baseUrl', { baseUrl: 'nowhere' }],
    ['write', { write: undefined }],
    ['timeoutMs', { timeoutMs: 0 }],
  ])('a bad %s is refused at once, by name', async (name, bad) => {
    const call = probeDestination({ ...options, ...bad } as ProbeOptions)
    await expect(call).rejects.toThrow(name)
  })

  it('a destination that is not there holds nothing, and nothing is thrown', async () => {
    const found = await probeDestination(options)
    const held = found.filter(({ holds }) => holds === true).map(({ property }) => property)
    // Nothing was answered, so nothing was answered wrongly.
    expect(held).toEqual(['proves_that_it_fences', 'spells_refusals'])
  })

  it('a write without a body leaves the slow body untried', async () => {
    const found = await probeDestination({ ...options, write: () => ({ path: '/' }) })
    const slow = found.find(({ property }) => property === 'checks_when_it_writes')
    expect(slow).toMatchObject({ holds: undefined })
  })
})
