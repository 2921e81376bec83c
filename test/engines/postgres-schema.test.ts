import { readFileSync } from 'node:fs'
import type pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { StoreUnavailableError, WriteGuard } from 'writefence'
import { PostgresFenceStore, PostgresLeaseStore } from 'writefence/postgres'
import { migration, tablesIn } from '../../src/storage/postgres/postgres-schema.ts'
import { describeEngine } from './engine.ts'
import { PostgresBench } from './postgres-bench.ts'

const bench = await PostgresBench.open('schema')
const script = readFileSync(new URL('../../sql/postgres.sql', import.meta.url), 'utf8')

let schemas = 0

/** A name for a schema that is dropped after the test. */
function newSchema(): string {
  schemas += 1
  const schema = `${bench.schema}_${schemas}`
  onTestFinished(
    async () => void (await bench.pool.query(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`)),
  )
  return schema
}

/** Everything that a schema consists of, as the catalog tells it. */
async function catalog(schema: string): Promise<unknown[]> {
  const { rows } = await bench.pool.query<{ said: string }>(
    `SELECT format('%s.%s %s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
       a.attnotnull, l.collname) AS said
     FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
     LEFT JOIN pg_collation AS l ON l.oid = a.attcollation
     WHERE c.relnamespace = $1::regnamespace
     UNION ALL SELECT format('%s %s %s', relname, relkind, reloptions) FROM pg_class
     WHERE relnamespace = $1::regnamespace
     UNION ALL SELECT pg_get_constraintdef(oid) FROM pg_constraint
     WHERE connamespace = $1::regnamespace
     UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = $1::text::regnamespace::text
     ORDER BY 1`,
    [schema],
  )
  return rows.map((row) => row.said.replaceAll(schema, 'S'))
}

async function versions(schema: string): Promise<unknown[]> {
  const { rows } = await bench.pool.query(
    `SELECT component, version FROM "${schema}".writefence_schema ORDER BY component`,
  )
  return rows
}

const both = (pool: pg.Pool, schema?: string) =>
  [new PostgresFenceStore(pool, { schema }), new PostgresLeaseStore(pool, { schema })] as const

describeEngine('PostgreSQL, the tables', bench.problem, () => {
  it('the script for migration tools is what the code has', () => {
    expect(script).toBe(migration(tablesIn(undefined)))
  })

  it('the script and createSchema() leave the same tables', async () => {
    const [byScript, byCode] = [newSchema(), newSchema()]
    await bench.pool.query(`CREATE SCHEMA ${byScript}; SET search_path = ${byScript}; ${script};
      RESET search_path`)
    for (const store of both(bench.connect(), byCode)) await store.createSchema()
    expect(await catalog(byScript)).toEqual(await catalog(byCode))
    expect((await catalog(byCode)).length).toBeGreaterThan(40)
    expect(await versions(byScript)).toEqual(await versions(byCode))
  })

  it('what the script has set up is left as it is by createSchema()', async () => {
    const schema = newSchema()
    await bench.pool.query(`CREATE SCHEMA ${schema}; SET search_path = ${schema}; ${script};
      RESET search_path`)
    const before = await catalog(schema)
    for (const store of both(bench.connect(), schema)) await store.createSchema()
    expect(await catalog(schema)).toEqual(before)
  })

  it('R107: eight that set it up at once all succeed, and it is set up once', async () => {
    const schema = newSchema()
    const stores = Array.from({ length: 8 }, () => both(bench.connect({ max: 2 }), schema)).flat()
    await Promise.all(stores.map((store) => store.createSchema()))
    expect(await versions(schema)).toEqual([
      { component: 'fence', version: 1 },
      { component: 'lease', version: 1 },
    ])
  })

  it('without a schema of its own, it uses the search path', async () => {
    const schema = newSchema()
    await bench.pool.query(`CREATE SCHEMA ${schema}`)
    const pool = bench.connect({ options: `-c search_path=${schema}` })
    const [fences] = both(pool)
    await fences.createSchema()
    expect(await versions(schema)).toEqual([{ component: 'fence', version: 1 }])
  })

  it('a schema may have any name', async () => {
    const schema = newSchema()
    const odd = `${schema}; "DROP`
    onTestFinished(async () => {
      await bench.pool.query(`DROP SCHEMA "${odd.replace('"', '""')}" CASCADE`)
    })
    const [fences, leases] = both(bench.connect(), odd)
    await fences.createSchema()
    await leases.createSchema()
    await new WriteGuard(fences).advance({ jobId: 'job', generation: 1 })
    expect(await leases.claim({ jobId: 'job', owner: 'w', ttlMs: 1000 })).toMatchObject({
      status: 'claimed',
    })
  })

  it.each([
    [2, 'upgrade writefence'],
    [0, 'migrate the tables'],
  ])('tables of version %i are refused, with advice: %s', async (version, advice) => {
    const schema = newSchema()
    for (const store of both(bench.connect(), schema)) await store.createSchema()
    await bench.pool.query(`UPDATE ${schema}.writefence_schema SET version = ${version}`)
    const [fences, leases] = both(bench.connect(), schema)
    const refused = { code: 'store_unavailable', message: expect.stringContaining(advice) }
    await expect(fences.createSchema()).rejects.toMatchObject(refused)
    for (const _ of ['asked once', 'asked again']) {
      await expect(new WriteGuard(fences).inspect('job')).rejects.toMatchObject(refused)
      await expect(leases.get('job')).rejects.toMatchObject(refused)
    }
    const [unasked] = both(bench.connect(), schema)
    const joined = bench.transaction((tx) =>
      new WriteGuard(unasked).within(tx, { token: { jobId: 'job', generation: 1 } }, () => 'late'),
    )
    await expect(joined).rejects.toMatchObject(refused)
  })

  it('missing tables are refused, with advice, and are found once they are there', async () => {
    const schema = newSchema()
    const [fences, leases] = both(bench.connect(), schema)
    const refused = { code: 'store_unavailable', message: /createSchema\(\).*sql\/postgres\.sql/ }
    await expect(new WriteGuard(fences).inspect('job')).rejects.toMatchObject(refused)
    await leases.createSchema()
    await expect(new WriteGuard(fences).inspect('job')).rejects.toMatchObject(refused)
    await fences.createSchema()
    expect(await new WriteGuard(fences).inspect('job')).toBeUndefined()
  })

  it('a role that may not is told so', async () => {
    const schema = newSchema()
    const role = `${schema}_role`
    for (const store of both(bench.connect(), schema)) await store.createSchema()
    await bench.pool.query(`CREATE ROLE ${role} LOGIN; GRANT USAGE ON SCHEMA ${schema} TO ${role};
      GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO ${role}`)
    onTestFinished(async () => {
      await bench.pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
    })
    const [, leases] = both(bench.connect({ user: role }), schema)
    await expect(leases.claim({ jobId: 'job', owner: 'w', ttlMs: 1000 })).rejects.toMatchObject({
      code: 'store_unavailable',
      message: /the role may not do this/,
      cause: { code: '42501' },
    })
  })

  it('a database that cannot hold every id is refused', async () => {
    const database = `${bench.schema}_ascii`
    await bench.pool.query(
      `CREATE DATABASE ${database} TEMPLATE template0
       ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'`,
    )
    onTestFinished(async () => {
      await bench.pool.query(`DROP DATABASE ${database} WITH (FORCE)`)
    })
    const pool = bench.connect({ database })
    const refused = new StoreUnavailableError(
      'PostgreSQL: the database is encoded in SQL_ASCII, ids need UTF8',
    )
    await expect(new PostgresFenceStore(pool).createSchema()).rejects.toThrow(refused.message)
  })
})

describe('the options of the stores', () => {
  const pool = { connect: () => expect.fail('the constructor asked the database') }

  it.each([
    [{ schema: 1 }, TypeError, 'schema'],
    [{ schema: '' }, RangeError, 'schema'],
    [{ schema: 'a\0b' }, RangeError, 'schema'],
    [{ schema: 'a'.repeat(64) }, RangeError, 'schema'],
    [{ schema: 'é'.repeat(32) }, RangeError, 'schema'],
    [{ timeoutMs: '5s' }, TypeError, 'timeoutMs'],
    [{ timeoutMs: 0 }, RangeError, 'timeoutMs'],
    [{ timeoutMs: Number.NaN }, RangeError, 'timeoutMs'],
    [{ timeoutMs: 86_400_001 }, RangeError, 'timeoutMs'],
    [{ effectTimeoutMs: 0.5 }, RangeError, 'effectTimeoutMs'],
    [{ effectTimeoutMs: 2 ** 31 }, RangeError, 'effectTimeoutMs'],
  ])('%j is refused by name', (options, kind, name) => {
    const construct = () => new PostgresFenceStore(pool as never, options as never)
    expect(construct).toThrow(kind)
    expect(construct).toThrow(name)
  })
})
