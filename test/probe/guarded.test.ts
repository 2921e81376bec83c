import { mkdtempSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import express from 'express'
import { describe, expect, it } from 'vitest'
import { WriteGuard } from 'writefence'
import { type ProbeOptions, probeDestination } from 'writefence/conformance'
import { type FencingOptions, fencing, fencingErrors } from 'writefence/express'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'
import { write } from './probing.ts'

const express4 = createRequire(import.meta.url)('express4') as typeof express

type Guarding = Pick<FencingOptions<express.Request>, 'protect' | 'fingerprint'>

interface Options {
  readonly framework: typeof express
  readonly guarding: Guarding
  /** Whether the guard comes before the parser of the body. */
  readonly first: boolean
}

/** A destination as the README has it, that can be stopped and started on its file. */
function destination({ framework, guarding, first }: Options) {
  const folder = mkdtempSync(join(tmpdir(), 'writefence-probe-'))
  let stop = (): void => {}
  const start = async (): Promise<string> => {
    const db = openSqlite(join(folder, 'db.sqlite'))
    db.exec('CREATE TABLE IF NOT EXISTS credits (job TEXT, operation TEXT)')
    const insert = db.prepare('INSERT INTO credits VALUES (?, ?)')
    const count = db.prepare('SELECT count(*) FROM credits WHERE job = ?').pluck()
    const credit = ({ jobId, operationId }: { jobId: string; operationId: string }) => {
      insert.run(jobId, operationId)
      return { number: count.get(jobId) as number }
    }
    const fence = fencing(new WriteGuard(new SqliteFenceStore(db)), guarding)
    const app = framework()
    app.use(...(first ? [fence, framework.json()] : [framework.json(), fence]))
    const handle = async (req: express.Request): Promise<unknown> =>
      guarding.protect === 'handler'
        ? credit(req.body)
        : (await fence.of(req).write(() => credit(req.body))).result
    app.post('/credits', (req, res, next) => {
      // Express 4 waits for no promise.
      handle(req).then((done) => res.status(201).json(done), next)
    })
    app.use(fencingErrors())
    const server: Server = app.listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    stop = () => {
      server.closeAllConnections()
      server.close()
      db.close()
    }
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  const effects = async (jobId: string): Promise<string[]> => {
    const db = openSqlite(join(folder, 'db.sqlite'))
    const list = db.prepare('SELECT operation FROM credits WHERE job = ? ORDER BY rowid').pluck()
    const found = list.all(jobId) as string[]
    db.close()
    return found
  }
  return {
    start,
    effects,
    restart: () => {
      stop()
      return start()
    },
    end: () => {
      stop()
      rmSync(folder, { recursive: true })
    },
  }
}

async function probe(options: Options): Promise<unknown> {
  const { start, effects, restart, end } = destination(options)
  try {
    const baseUrl = await start()
    const found = await probeDestination({ baseUrl, write, effects, restart })
    return found.filter(({ holds }) => holds !== true)
  } finally {
    end()
  }
}

describe.each([
  ['Express 5', express],
  ['Express 4', express4],
])('a destination on %s has every property', (_, framework) => {
  it("protect: 'write'", async () => {
    expect(await probe({ framework, guarding: { protect: 'write' }, first: false })).toEqual([])
  })

  it("protect: 'handler'", async () => {
    expect(await probe({ framework, guarding: { protect: 'handler' }, first: false })).toEqual([])
  })

  it('but those that need a fingerprint, if the guard comes before the parser', async () => {
    const guarding = { protect: 'write', fingerprint: false } as const
    expect(await probe({ framework, guarding, first: true })).toMatchObject([
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
