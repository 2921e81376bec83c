import { readFileSync } from 'node:fs'
import mysql, { type Pool } from 'mysql2/promise'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { WriteGuard } from 'writefence'
import { MysqlFenceStore, MysqlLeaseStore } from 'writefence/mysql'
import { migration } from '../../src/storage/mysql/mysql-schema.ts'
import { mysqlServer } from '../support/servers.ts'
import { describeEngine } from './engine.ts'
import { MysqlBench } from './mysql-bench.ts'

const bench = await MysqlBench.open('schema')
const script = readFileSync(new URL('../../sql/mysql.sql', import.meta.url), 'utf8')

let databases = 0

/** A database without tables, dropped after the test. */
async function newDatabase(): Promise<string> {
  databases += 1
  const database = `${bench.database}_${databases}`
  await bench.pool.query(`CREATE DATABASE ${database} CHARACTER SET utf8mb4`)
  onTestFinished(async () => void (await bench.pool.query(`DROP DATABASE ${database}`)))
  return database
}

async function runScript(database: string): Promise<void> {
  const connection = await mysql.createConnection({
    ...mysqlServer,
    database,
    multipleStatements: true,
  })
  await connection.query(script)
  await connection.end()
}

/** Everything that a database consists of, as the server tells it. */
async function catalog(database: string): Promise<unknown[]> {
  const [tables] = await bench.pool.query('SHOW TABLES FROM ??', [database])
  return Promise.all(
    (tables as object[]).map(async (row) => {
      const [told] = await bench.pool.query('SHOW CREATE TABLE ??.??', [
        database,
        Object.values(row)[0],
      ])
      return told
    }),
  )
}

async function versions(database: string, prefix = 'writefence_'): Promise<unknown[]> {
  const [rows] = await bench.pool.query(
    `SELECT CAST(component AS CHAR) AS component, version
     FROM ${database}.${prefix}schema ORDER BY component`,
  )
  return rows as unknown[]
}

const both = (pool: Pool, tablePrefix?: string) =>
  [new MysqlFenceStore(pool, { tablePrefix }), new MysqlLeaseStore(pool, { tablePrefix })] as const

/** The pool, on a server that answers other questions than it is asked. */
function answering(pool: Pool, told: (sql: string) => string): Pool {
  const getConnection = async () => {
    const connection = await pool.getConnection()
    return {
      query: (given: { sql: string }) => connection.query({ ...given, sql: told(given.sql) }),
      destroy: () => connection.destroy(),
      release: () => connection.release(),
    }
  }
  return { getConnection } as unknown as Pool
}

describeEngine('MariaDB, the tables', bench.problem, () => {
  let database: string

  beforeEach(async () => {
    database = await newDatabase()
  })

  it('the script for migration tools is what the code has', () => {
    expect(script).toBe(migration('writefence_'))
  })

  it('the script and createSchema() leave the same tables', async () => {
    const byCode = await newDatabase()
    await runScript(database)
    for (const store of both(bench.connect({ database: byCode }))) await store.createSchema()
    expect(await catalog(database)).toEqual(await catalog(byCode))
    expect(await catalog(byCode)).toHaveLength(4)
    expect(await versions(database)).toEqual(await versions(byCode))
  })

  it('what is there is left as it is, by the script and by createSchema()', async () => {
    const [fences, leases] = both(bench.connect({ database }))
    await fences.createSchema()
    await leases.createSchema()
    await new WriteGuard(fences).advance({ jobId: 'job', generation: 7 })
    const before = await catalog(database)
    await runScript(database)
    await fences.createSchema()
    expect(await catalog(database)).toEqual(before)
    expect(await new WriteGuard(fences).inspect('job')).toMatchObject({ highestGeneration: 7 })
  })

  it('R107: eight that set it up at once all succeed, and it is set up once', async () => {
    const stores = Array.from({ length: 8 }, () => both(bench.connect({ database }))).flat()
    await Promise.all(stores.map((store) => store.createSchema()))
    expect(await versions(database)).toEqual([
      { component: 'fence', version: 1 },
      { component: 'lease', version: 1 },
    ])
  })

  it('what a set-up that broke off has left is completed by the next one', async () => {
    const [fences] = both(bench.connect({ database }))
    await fences.createSchema()
    await bench.pool.query(`DELETE FROM ${database}.writefence_schema`)
    await bench.pool.query(`DROP TABLE ${database}.writefence_operation`)
    await fences.createSchema()
    expect(await new WriteGuard(fences).unsettled()).toEqual([])
  })

  it('tables with other prefixes are others', async () => {
    const [one] = both(bench.connect({ database }), 'one_')
    const [two] = both(bench.connect({ database }), 'Two_2_')
    await one.createSchema()
    await two.createSchema()
    await new WriteGuard(one).advance({ jobId: 'job', generation: 7 })
    expect(await new WriteGuard(two).inspect('job')).toBeUndefined()
    expect(await versions(database, 'one_')).toEqual([{ component: 'fence', version: 1 }])
  })

  it('a database that is told is used, whichever one a connection is at', async () => {
    const odd = `${database} "odd\` name`
    await bench.pool.query('CREATE DATABASE ??', [odd])
    onTestFinished(async () => void (await bench.pool.query('DROP DATABASE ??', [odd])))
    const pool = bench.connect({ connectionLimit: 1 })
    const fences = new MysqlFenceStore(pool, { database: odd, tablePrefix: 'own_' })
    const leases = new MysqlLeaseStore(pool, { database: odd, tablePrefix: 'own_' })
    await fences.createSchema()
    await leases.createSchema()
    const guard = new WriteGuard(fences)
    const write = { token: { jobId: 'job', generation: 7 }, operationId: 'x' }
    await guard.write(write, (tx) => tx.query(`USE ${database}`).then(() => 'done'))
    expect(await guard.write(write, () => 'twice')).toMatchObject({ status: 'replayed' })
    await guard.seal(write.token)
    expect(await guard.prune({ olderThanMs: 0, sealedOnly: true })).toEqual({ pruned: 1 })
    const claim = await leases.claim({ jobId: 'job', owner: 'w', ttlMs: 1000 })
    expect(claim).toMatchObject({ status: 'claimed' })
    expect(await leases.list()).toHaveLength(1)
    await bench.pool.query('ALTER TABLE ??.own_fence ENGINE = MEMORY', [odd])
    const other = new MysqlFenceStore(pool, { database: odd, tablePrefix: 'own_' })
    await expect(new WriteGuard(other).inspect('job')).rejects.toThrow(/stored by MEMORY/)
  })

  it('a server that may lose commits is warned of, once', async () => {
    const warnings: Error[] = []
    const keep = (warning: Error) => warnings.push(warning)
    process.on('warning', keep)
    onTestFinished(() => void process.off('warning', keep))
    const settings = ['@@innodb_flush_log_at_trx_commit', '@@log_bin', '@@sync_binlog']
    for (const [values, expected] of [
      [[3, 0, 0], 0],
      [[1, 1, 1], 0],
      [[1, 1, 0], 1],
      [[2, 0, 1], 1],
    ] as const) {
      const told = (sql: string) =>
        settings.reduce((text, name, i) => text.replace(name, String(values[i])), sql)
      await new MysqlFenceStore(answering(bench.pool, told)).createSchema()
      await new Promise((resolve) => setImmediate(resolve))
      expect(warnings).toHaveLength(expected)
    }
    expect(warnings).toMatchObject([{ code: 'WRITEFENCE_DURABILITY' }])
  })

  it.each([
    [2, 'upgrade writefence'],
    [0, 'migrate the tables'],
  ])('tables of version %i are refused, with advice: %s', async (version, advice) => {
    for (const store of both(bench.connect({ database }))) await store.createSchema()
    await bench.pool.query(`UPDATE ${database}.writefence_schema SET version = ${version}`)
    const pool = bench.connect({ database })
    const [fences, leases] = both(pool)
    const refused = { code: 'store_unavailable', message: expect.stringContaining(advice) }
    await expect(fences.createSchema()).rejects.toMatchObject(refused)
    for (const _ of ['asked once', 'asked again']) {
      await expect(new WriteGuard(fences).inspect('job')).rejects.toMatchObject(refused)
      await expect(leases.get('job')).rejects.toMatchObject(refused)
    }
    const joined = bench.transaction(
      (tx) =>
        new WriteGuard(fences).within(tx, { token: { jobId: 'job', generation: 1 } }, () => 'late'),
      { pool },
    )
    await expect(joined).rejects.toMatchObject(refused)
  })

  it('missing tables are refused, with advice, and are found once they are there', async () => {
    const [fences, leases] = both(bench.connect({ database }))
    const refused = { code: 'store_unavailable', message: /createSchema\(\).*sql\/mysql\.sql/ }
    await expect(new WriteGuard(fences).inspect('job')).rejects.toMatchObject(refused)
    await leases.createSchema()
    await expect(new WriteGuard(fences).inspect('job')).rejects.toMatchObject(refused)
    await fences.createSchema()
    expect(await new WriteGuard(fences).inspect('job')).toBeUndefined()
    await bench.pool.query(`DROP TABLE ${database}.writefence_fence`)
    await expect(new WriteGuard(fences).inspect('job')).rejects.toMatchObject(refused)
  })

  it('R127: pruning takes the oldest first, whatever index the server goes by', async () => {
    let now = 1000
    const pool = bench.connect({ database })
    const fences = new MysqlFenceStore(pool, { now: () => now })
    const leases = new MysqlLeaseStore(pool, { now: () => now })
    await fences.createSchema()
    await leases.createSchema()
    await bench.pool.query(`ALTER TABLE ${database}.writefence_operation DROP KEY applied`)
    await bench.pool.query(`ALTER TABLE ${database}.writefence_lease DROP KEY ended`)
    const guard = new WriteGuard(fences)
    const write = (operationId: string) => ({ token: { jobId: 'job', generation: 1 }, operationId })
    for (const id of ['b', 'a']) {
      await guard.write(write(id), () => id)
      await leases.raise(id, 1)
      now += 1
    }
    expect(await guard.prune({ olderThanMs: 0, limit: 1 })).toEqual({ pruned: 1 })
    expect(await guard.judge(write('a'))).toMatchObject({ status: 'replay' })
    expect(await leases.prune({ olderThanMs: 0, limit: 1 })).toEqual({ pruned: 1 })
    expect((await leases.list()).map(({ jobId }) => jobId)).toEqual(['a'])
  })

  it('tables that cannot undo a write are refused', async () => {
    const [fences] = both(bench.connect({ database }))
    await fences.createSchema()
    await bench.pool.query(`ALTER TABLE ${database}.writefence_fence ENGINE = MEMORY`)
    const [other] = both(bench.connect({ database }))
    await expect(new WriteGuard(other).inspect('job')).rejects.toMatchObject({
      code: 'store_unavailable',
      message: /writefence_fence is stored by MEMORY/,
    })
  })

  it('a server that is too old is refused', async () => {
    const pool = bench.connect({ database })
    for (const [version, oldest] of [
      ['10.4.30-MariaDB-log', '10.5'],
      ['5.7.44', '8.0'],
    ]) {
      const told = (sql: string) => sql.replace('VERSION()', `'${version}'`)
      const store = new MysqlFenceStore(answering(pool, told))
      await expect(store.createSchema()).rejects.toMatchObject({
        code: 'store_unavailable',
        message: expect.stringContaining(`is too old: writefence needs ${oldest}`),
      })
      expect((await pool.query('SHOW TABLES'))[0]).toEqual([])
    }
  })

  it('a user who may not write is told so; one who may not create finds the tables', async () => {
    for (const store of both(bench.connect({ database }))) await store.createSchema()
    const user = `wf_${process.pid}_${databases}`
    await bench.pool.query(`CREATE USER ${user} IDENTIFIED BY 'secret'`)
    onTestFinished(async () => void (await bench.pool.query(`DROP USER ${user}`)))
    await bench.pool.query(`GRANT SELECT, INSERT, DELETE ON ${database}.* TO ${user}`)
    const [fences] = both(bench.connect({ database, user, password: 'secret' }))
    await expect(
      new WriteGuard(fences).advance({ jobId: 'a', generation: 1 }),
    ).rejects.toMatchObject({
      code: 'store_unavailable',
      message: /needs SELECT, INSERT, UPDATE and DELETE/,
    })
    await bench.pool.query(`GRANT UPDATE ON ${database}.* TO ${user}`)
    const [allowed] = both(bench.connect({ database, user, password: 'secret' }))
    await allowed.createSchema()
    await new WriteGuard(allowed).advance({ jobId: 'a', generation: 1 })
  })
})
