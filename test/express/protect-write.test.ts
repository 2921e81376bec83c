import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Database } from 'better-sqlite3'
import request from 'supertest'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { fencedStorage, WriteGuard } from 'writefence'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'
import { atEnd, bearing, decisions, destination, faults, versions } from './harness.ts'
import { type Options, type Writer, writeRoute } from './routes.ts'

describe.each(versions)("%s, protect: 'write'", (_, express) => {
  const setUp = (writer?: Writer, options?: Options, bank = destination()) =>
    writeRoute(express, writer, options, bank)

  it('applies, replays for the same and the next generation, refuses what is stale', async () => {
    const { send, credits } = setUp()
    const first = await send(7, 'op-1')
    expect([first.status, first.body]).toEqual([201, { balance: 5 }])
    expect(first.headers['fencing-verdict']).toBe('applied;highest=7')
    expect(first.headers).not.toHaveProperty('idempotent-replayed')
    for (const generation of [7, 8]) {
      const again = await send(generation, 'op-1')
      expect([again.status, again.body]).toEqual([201, { balance: 5 }])
      expect(again.headers['fencing-verdict']).toBe(`replayed;highest=${generation}`)
      expect(again.headers['idempotent-replayed']).toBe('true')
    }
    const stale = await send(7, 'op-2')
    expect(stale.status).toBe(412)
    expect(stale.headers).toMatchObject({
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
      'fencing-verdict': 'stale;highest=8',
    })
    expect(stale.body).toMatchObject({
      code: 'stale',
      retryable: false,
      jobId: 'job',
      generation: 7,
      highestGeneration: 8,
      operationApplied: false,
    })
    expect(JSON.stringify(stale.body)).not.toContain('lease-8')
    expect(credits()).toEqual([5])
  })

  it('a stale caller is refused early, and told that its operation had been applied', async () => {
    const { send, runs, credits } = setUp()
    await send(7, 'op-1')
    await send(8, 'op-2')
    const stale = await send(7, 'op-1')
    expect(stale.body).toMatchObject({ code: 'stale', operationApplied: true })
    expect((await send(7, 'op-1', 6)).body.operationApplied).toBe(false)
    expect(runs()).toBe(2)
    expect(credits()).toEqual([5, 5])
  })

  it('a refusal says nothing of the answer that was being made', async () => {
    const { guard, send } = setUp(async (bound, _req, res) => {
      res.location('/credits/1').set({ ETag: '"1"', 'Content-Language': 'fr' })
      await bound.write(() => 1)
    })
    await guard.seal({ jobId: 'job', generation: 7, leaseId: 'lease-7' })
    const refused = await send(7, 'op')
    expect([refused.status, refused.body.code]).toEqual([412, 'sealed'])
    for (const name of ['location', 'etag', 'content-language']) {
      expect(refused.headers).not.toHaveProperty(name)
    }
  })

  it('another holder of the same generation is refused: an alarm', async () => {
    const { app, send, credits } = setUp()
    await send(7, 'op-1')
    const seen = faults()
    const other = await request(app)
      .post('/credits')
      .set(bearing(7, 'op-2', { leaseId: 'restored' }))
      .send({ amount: 1 })
    expect([other.status, other.body.code]).toEqual([409, 'conflict'])
    expect(JSON.stringify(other.body)).not.toContain('lease-7')
    expect(other.body.detail).toContain('(a token without its lease counts as another holder)')
    expect(seen.map(({ fault }) => fault)).toEqual(['conflict'])
    expect(credits()).toEqual([5])
  })

  it('R52: a handler that throws before it writes leaves its fence, also on restart', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'writefence-'))
    atEnd(() => rmSync(folder, { recursive: true }))
    const open = () => {
      const db = openSqlite(join(folder, 'fences.db'))
      return { ...destination(), db, guard: new WriteGuard(new SqliteFenceStore(db)) }
    }
    const before = open()
    const failing = setUp(() => Promise.reject(new Error('boom')), {}, before)
    expect((await failing.send(5, 'op')).status).toBe(500)
    before.db.close()
    const after = open()
    atEnd(() => after.db.close())
    const stale = await setUp((_b, _q, res) => res.end(), {}, after).send(4, 'op')
    expect([stale.status, stale.body.code]).toEqual([412, 'stale'])
  })

  it('R83, R85: the same key with another body or path is a mismatch', async () => {
    const { app, send, credits } = setUp()
    await send(7, 'op')
    expect([(await send(7, 'op', 6)).status]).toEqual([422])
    const other = request(app).post('/credits?x=1').set(bearing(7, 'op')).send({ amount: 5 })
    expect((await other).body.code).toBe('mismatch')
    expect(credits()).toEqual([5])
  })

  it('R70, R104: many at once under one key: one effect, the others get its answer', async () => {
    const { send, credits } = setUp()
    const all = await Promise.all(Array.from({ length: 30 }, () => send(7, 'op')))
    expect(all.map(({ status }) => status)).toEqual(all.map(() => 201))
    expect(
      all.filter(({ headers }) => headers['fencing-verdict'] === 'applied;highest=7'),
    ).toHaveLength(1)
    expect(credits()).toEqual([5])
  })

  it('R53: generations that come shuffled are accepted in rising order only', async () => {
    const { app, credits, guard } = setUp()
    const shuffled = Array.from({ length: 60 }, (_each, index) => ((index * 37) % 20) + 1)
    const answers = await Promise.all(
      shuffled.map((generation, index) =>
        request(app)
          .post('/credits')
          .set(bearing(generation, `op-${index}`))
          .send({ amount: generation }),
      ),
    )
    for (const { status } of answers) expect([201, 412]).toContain(status)
    expect(credits()).toEqual([...credits()].sort((a, b) => a - b))
    expect(credits().length).toBeGreaterThan(0)
    expect((await guard.inspect('job'))?.highestGeneration).toBe(20)
  })

  it('R122: one refusal is one decision', async () => {
    const { send } = setUp()
    await send(8, 'op')
    const seen = decisions()
    await send(7, 'other')
    expect(seen.map(({ decision }) => decision)).toEqual(['stale'])
  })
  describe('several writes in one request', () => {
    it('a second one under the same id is a TypeError, under its own it is applied', async () => {
      const bank = destination()
      const handler: Writer = async (bound, _q, res) => {
        await bound.write(bank.credit(1))
        await expect(bound.write(bank.credit(2))).rejects.toThrow(TypeError)
        await expect(bound.write(bank.credit(2))).rejects.toThrow(
          'operation "op" is under way or done in this request:' +
            ' a second write needs an operationId of its own',
        )
        const { result } = await bound.write(bank.credit(3), { operationId: 'op/2' })
        res.json(result)
      }
      const { send } = setUp(handler, {}, bank)
      expect((await send(7, 'op')).body).toEqual({ balance: 4 })
      expect((await send(7, 'op')).headers['idempotent-replayed']).toBe('true')
      expect(bank.credits()).toEqual([1, 3])
    })

    it('what took place now makes it a first answer, whatever was replayed beside it', async () => {
      const bank = destination()
      let last = 'op/1'
      const handler: Writer = async (bound, _q, res) => {
        await bound.write(bank.credit(1))
        await bound.write(bank.credit(2), { operationId: last })
        await bound.write(bank.credit(3), { operationId: 'op/9' })
        res.end()
      }
      const { send } = setUp(handler, {}, bank)
      await send(7, 'op')
      last = 'op/2'
      const mixed = await send(7, 'op')
      expect(mixed.headers['fencing-verdict']).toBe('applied;highest=7')
      expect(mixed.headers).not.toHaveProperty('idempotent-replayed')
      expect(bank.credits()).toEqual([1, 2, 3, 2])
    })

    it('one that threw may be tried again', async () => {
      const bank = destination()
      const handler: Writer = async (bound, _q, res) => {
        const bug = () => {
          throw new Error('bug')
        }
        await expect(bound.write(bug)).rejects.toThrow('bug')
        expect(() => bound.within(bank.db, bank.credit(1))).toThrow(TypeError)
        await bound.write(bank.credit(2))
        res.end()
      }
      expect((await setUp(handler, {}, bank).send(7, 'op')).status).toBe(200)
      expect(bank.credits()).toEqual([2])
    })
  })

  describe('the verbs', () => {
    it('within: in a transaction of the handler', async () => {
      const bank = destination()
      const handler: Writer = (bound, _q, res) => {
        bank.db.exec('BEGIN IMMEDIATE')
        const { status } = bound.within(bank.db, bank.credit(1))
        bank.db.exec('COMMIT')
        res.json({ status })
      }
      const { send } = setUp(handler, {}, bank)
      const answer = await send(7, 'op')
      expect([answer.status, answer.body]).toEqual([200, { status: 'applied' }])
      expect(answer.headers['fencing-verdict']).toBe('applied;highest=7')
      expect((await send(7, 'op')).body).toEqual({ status: 'replayed' })
      expect(bank.credits()).toEqual([1])
    })

    it('effect: elsewhere', async () => {
      const calls: unknown[] = []
      const handler: Writer = async (bound, _q, res) => {
        const { result } = await bound.effect(async ({ operationId, token }) => {
          calls.push([operationId, token.generation])
          return 'charged'
        })
        res.json({ result })
      }
      const { send } = setUp(handler)
      await send(7, 'op')
      expect((await send(8, 'op')).body).toEqual({ result: 'charged' })
      expect(calls).toEqual([['op', 7]])
    })

    it('fencedStorage takes the fence of a request, and counts as a write', async () => {
      const bank = destination()
      const storage = fencedStorage(bank.guard, {
        credit: (_tx: Database, amount: number) => bank.credit(amount)(),
      })
      const handler: Writer = async (bound, _q, res) => {
        res.json((await storage.credit(bound, 5)).result)
      }
      const { send } = setUp(handler, {}, bank)
      const answer = await send(7, 'op')
      expect([answer.status, answer.body]).toEqual([200, { balance: 5 }])
      expect((await send(7, 'op')).headers['fencing-verdict']).toBe('replayed;highest=7')
    })

    it('a sealed job still replays, and takes nothing new', async () => {
      const { guard, send, credits } = setUp()
      await send(7, 'op')
      await guard.seal({ jobId: 'job', generation: 7, leaseId: 'lease-7' })
      expect((await send(7, 'op')).status).toBe(201)
      const sealed = await send(8, 'new')
      expect([sealed.status, sealed.body.code]).toEqual([412, 'sealed'])
      expect(sealed.headers['fencing-verdict']).toBe('sealed;highest=8')
      expect(credits()).toEqual([5])
    })

    it('know the token, the operation id and the type of the transaction', async () => {
      const handler: Writer = async (bound, req, res) => {
        expect(bound.fenced).toBe(true)
        expect(bound.token).toEqual({ jobId: 'job', generation: 7, leaseId: 'lease-7' })
        expect(bound.operationId).toBe('op')
        expect((req as { fence?: unknown }).fence).toBe(bound)
        const outcome = await bound.write((tx) => {
          expectTypeOf(tx).toEqualTypeOf<Database>()
          return tx.prepare('SELECT 1 AS one').get()
        })
        expect(outcome.appliedGeneration).toBe(7)
        res.end()
      }
      expect((await setUp(handler).send(7, 'op')).status).toBe(200)
    })
  })

  it('a store that fails after the gate is 503, and the fence that was seen is told', async () => {
    const bank = destination()
    const { send } = setUp(
      async (bound) => {
        bank.db.close()
        await bound.write(() => 1)
      },
      {},
      bank,
    )
    const answer = await send(7, 'op')
    expect([answer.status, answer.body.code]).toEqual([503, 'store_unavailable'])
    expect(answer.body.retryable).toBe(true)
    expect(answer.headers['fencing-verdict']).toBe('store_unavailable;highest=7')
  })

  it('without requireOperationId: stale writes are refused, duplicates are not known', async () => {
    const { send, credits } = setUp(undefined, { requireOperationId: false })
    await send(7, undefined)
    await send(7, undefined)
    expect(credits()).toEqual([5, 5])
    await send(8, undefined)
    expect((await send(7, undefined)).body.code).toBe('stale')
  })
})
