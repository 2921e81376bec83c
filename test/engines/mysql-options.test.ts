import mysqlWithCallbacks from 'mysql2'
import type { PoolConnection, PoolOptions } from 'mysql2/promise'
import mysql from 'mysql2/promise'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { MAX_GENERATION, WriteGuard } from 'writefence'
import { MysqlFenceStore, MysqlLeaseStore } from 'writefence/mysql'
import { mysqlServer } from '../support/servers.ts'
import { describeEngine } from './engine.ts'
import { MysqlBench } from './mysql-bench.ts'

const bench = await MysqlBench.open('options')

/** Ways to set up a pool of mysql2, each of which changes what goes in or what comes out. */
const drivers: [string, PoolOptions][] = [
  ['rows as arrays', { rowsAsArray: true }],
  ['big numbers as strings', { supportBigNumbers: true, bigNumberStrings: true }],
  ['no casting', { typeCast: false }],
  ['casting of its own', { typeCast: (field) => field.string()?.toUpperCase() }],
  ['named placeholders', { namedPlaceholders: true }],
  ['values spelled by hand', { queryFormat: (sql: string) => sql.replace(/[?:]/g, 'NULL') }],
  ['nested tables', { nestTables: true }],
  ['decimals as numbers, dates as strings', { decimalNumbers: true, dateStrings: true }],
  ['another time zone', { timezone: '+05:30' }],
  ['several statements at once', { multipleStatements: true }],
  ['changed rows counted, not found ones', { flags: ['-FOUND_ROWS'] }],
  ['the charset latin1', { charset: 'latin1_swedish_ci' }],
  ['the charset gbk', { charset: 'gbk_chinese_ci' }],
  ['no code made at run time', { disableEval: true }],
  ['compression', { compress: true }],
]

const sessions: [string, string[]][] = [
  ['no strict mode', ["SET sql_mode = ''"]],
  ['the mode of ANSI', ["SET sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES'"]],
  [
    'the mode of others',
    ["SET sql_mode = 'TRADITIONAL,ONLY_FULL_GROUP_BY,PAD_CHAR_TO_FULL_LENGTH'"],
  ],
  ['safe updates', ['SET sql_safe_updates = 1']],
  ['a collation that folds', ["SET NAMES utf8mb4 COLLATE 'utf8mb4_unicode_520_ci'"]],
  ['results in latin1', ["SET character_set_results = 'latin1'"]],
  ['a time zone far east', ["SET time_zone = '+13:00'"]],
  ['a time zone far west', ["SET time_zone = '-12:00'"]],
  ['no commits by itself', ['SET autocommit = 0']],
  ['few rows selected', ['SET sql_select_limit = 1']],
  ['transactions that only read', ['SET SESSION TRANSACTION READ ONLY']],
]

/** Both stores through what depends on how texts, numbers, bytes and times get in and out. */
async function assertWorks(options: PoolOptions, ...setUp: string[]): Promise<void> {
  const pool = bench.connect(options, ...setUp)
  const guard = new WriteGuard(new MysqlFenceStore(pool))
  const leases = new MysqlLeaseStore(pool)
  const job = { scope: '', jobId: '订单-1 \'\\" ? :a 🔑' }
  const token = { jobId: job.jobId, generation: MAX_GENERATION - 1, leaseId: 'Ä\\' }
  const write = { token, operationId: 'ö?:op', fingerprint: 'ß' }
  const result = { text: '\\ \' " ? :a ☃ é', list: [1.5, null] }

  const first = await guard.write(write, async (tx: PoolConnection) => {
    await tx.query(`INSERT INTO ${bench.database}.log (text) VALUES ('effect')`)
    return result
  })
  expect(first).toMatchObject({ status: 'applied', highestGeneration: MAX_GENERATION - 1 })
  const again = await guard.write(write, () => expect.unreachable())
  expect(again).toEqual({ ...first, status: 'replayed', result })
  const failed = { ...write, operationId: 'unknown' }
  const lost = guard.effect(failed, () => Promise.reject(new Error('lost')))
  await expect(lost).rejects.toThrow('lost')
  await guard.effect({ ...write, operationId: 'other' }, async ({ operationId }) => {
    const newer = { ...token, generation: MAX_GENERATION }
    expect(await guard.advance(newer)).toMatchObject({ older: { inFlight: 1, overdue: 0 } })
    expect(await guard.unsettled()).toMatchObject([
      { ...job, operationId, status: 'in_flight' },
      { ...job, operationId: 'unknown', status: 'unknown' },
    ])
    const held = await guard.judge({ token: newer, operationId: 'next' })
    expect(held).toMatchObject({ code: 'in_flight', retryAfterMs: expect.closeTo(60_000, -4) })
  })
  expect(await guard.inspect(job.jobId)).toMatchObject({ ...job, inFlight: 0, unknown: 1 })
  expect(await guard.prune({ olderThanMs: 0 })).toEqual({ pruned: 2 })

  const claim = { jobId: job.jobId, owner: 'wörker 🔑', ttlMs: 60_000, leaseId: 'l\\' }
  const answer = await leases.claim(claim)
  if (answer.status !== 'claimed') return expect.unreachable()
  const { lease } = answer
  expect(lease).toEqual({ ...claim, generation: 1, leaseUntil: expect.closeTo(Date.now(), -6) })
  expect(await leases.list({ owner: claim.owner, after: '一' })).toMatchObject([
    { jobId: job.jobId, leaseUntil: lease.leaseUntil, expired: false },
  ])
  expect(await leases.renew(lease)).toMatchObject({ status: 'renewed', lapsed: false })
  expect(await leases.complete(lease)).toEqual({ status: 'completed', lapsed: false })
  expect(await leases.complete(lease)).toEqual({ status: 'completed', lapsed: false })
  expect(await leases.prune({ olderThanMs: 0 })).toEqual({ pruned: 1 })
  expect(await leases.get(job.jobId)).toEqual({
    jobId: job.jobId,
    generation: 1,
    status: 'completed',
    owner: undefined,
  })
  expect(await bench.log()).toEqual(['effect'])
}

const failure = (text: string, errno?: number) => Object.assign(new Error(text), { errno })

describeEngine('pools of mysql2', bench.problem, () => {
  beforeEach(() => bench.empty())

  it.each(drivers)('work with %s', (_, options) => assertWorks(options))

  it.each(sessions)('R04: work with sessions with %s', (_, setUp) => assertWorks({}, ...setUp))

  it('their connections are given back as they were', async () => {
    const pool = bench.connect({ connectionLimit: 1 }, 'SET idle_transaction_timeout = 77')
    const guard = new WriteGuard(new MysqlFenceStore(pool))
    await guard.write({ token: { jobId: 'job', generation: 1 } }, async (tx) => {
      const [rows] = await tx.query('SELECT @@idle_transaction_timeout AS idle')
      // As long as the effect may take, and a little.
      expect(rows).toEqual([{ idle: 31 }])
    })
    const [rows] = await pool.query(
      'SELECT @@idle_transaction_timeout AS idle, @@in_transaction AS inside',
    )
    expect(rows).toEqual([{ idle: 77, inside: 0 }])
  })

  it.each<[string, (sql: string) => Error | undefined]>([
    [
      'whose server takes no writes any more',
      (sql) => (sql.includes('lock_wait') ? failure('read-only', 1290) : undefined),
    ],
    ['that could not commit', (sql) => (sql === 'COMMIT' ? failure('who knows') : undefined)],
    [
      'that could not roll back',
      (sql) => (/lock_wait|^ROLLBACK$/.test(sql) ? failure('who knows') : undefined),
    ],
  ])('a connection %s is not used again', async (_, fails) => {
    const connection = await bench.connect().getConnection()
    const { threadId } = connection
    const send = connection.query
    Object.assign(connection, {
      query: async (query: { sql: string }) => {
        const error = fails(query.sql)
        if (error !== undefined) throw error
        return send.call(connection, query)
      },
    })
    const store = new MysqlFenceStore({ getConnection: async () => connection })
    const advanced = new WriteGuard(store).advance({ jobId: 'job', generation: 1 })
    await expect(advanced).rejects.toMatchObject({ code: 'store_unavailable' })
    await expect
      .poll(async () => (await bench.pool.query('SHOW PROCESSLIST'))[0])
      .not.toContainEqual(expect.objectContaining({ Id: threadId }))
  })

  describe('that are none are refused at once', () => {
    it('with a TypeError', () => {
      const callbacks = mysqlWithCallbacks.createPool(mysqlServer)
      onTestFinished(() => void callbacks.end())
      for (const pool of [undefined, null, {}, 'mysql://', callbacks] as never[]) {
        expect(() => new MysqlFenceStore(pool)).toThrow(TypeError)
        expect(() => new MysqlLeaseStore(pool)).toThrow(TypeError)
      }
      const promises = new MysqlFenceStore(callbacks.promise())
      expect(promises.mode).toBe('async')
    })

    it.each([
      [{ timeoutMs: 0 }, RangeError],
      [{ timeoutMs: '5s' }, TypeError],
      [{ effectTimeoutMs: Number.NaN }, RangeError],
      [{ database: '' }, RangeError],
      [{ database: 'a.b' }, RangeError],
      [{ database: 5 }, TypeError],
      [{ tablePrefix: '' }, RangeError],
      [{ tablePrefix: 'a`; DROP TABLE log; --' }, RangeError],
      [{ tablePrefix: 'x'.repeat(41) }, RangeError],
      [{ tablePrefix: 5 }, TypeError],
    ])('and so are options like %j', async (options, error) => {
      const pool = mysql.createPool(mysqlServer)
      expect(() => new MysqlFenceStore(pool, options as never)).toThrow(error)
      await pool.end()
    })
  })
})
