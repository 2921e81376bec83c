import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { runWithLease, WriteGuard } from 'writefence'
import { probeDestination } from 'writefence/conformance'
import { fenceRoutes, fencing, fencingErrors, leaseRoutes } from 'writefence/express'
import { HttpLeaseStore, httpDestination } from 'writefence/http'
import { MysqlFenceStore, MysqlLeaseStore } from 'writefence/mysql'
import { PostgresFenceStore, PostgresLeaseStore } from 'writefence/postgres'
import { RedisFenceStore, RedisLeaseStore } from 'writefence/redis'
import { openSqlite, SqliteFenceStore, SqliteLeaseStore } from 'writefence/sqlite'
import { open, SqliteDestination, temporaryFile } from './support/sqlite-destination.ts'

const service = 'http://127.0.0.1:9'
const run = { jobId: 'job', owner: 'worker', ttlMs: 1000 }
const anything = (value: unknown) => value as never
const nothing = async () => anything(undefined)
const pool = anything({ connect: nothing, getConnection: nothing })
const redis = anything({ duplicate: nothing, isCluster: false, call: nothing })
const none = { authorize: 'none' } as const
const { guard } = new SqliteDestination(openSqlite(':memory:'))
const leases = new SqliteLeaseStore(openSqlite(':memory:'))

/** Whatever takes options: what it needs of them, and the names of those that it can do without. */
const takers: [name: string, (options: never) => unknown, needed: object, optional: string][] = [
  [
    'WriteGuard',
    (o) => new WriteGuard(guard.store, o),
    {},
    'codec, deadlineMs, dangerouslyFailOpen',
  ],
  ['openSqlite', (o) => openSqlite(':memory:', o), {}, 'busyTimeoutMs'],
  [
    'SqliteFenceStore',
    (o) => new SqliteFenceStore(open(), o),
    {},
    'now, busyTimeoutMs, groupCommit',
  ],
  [
    'SqliteLeaseStore',
    (o) => new SqliteLeaseStore(open(), o),
    {},
    'now, busyTimeoutMs, groupCommit',
  ],
  [
    'PostgresFenceStore',
    (o) => new PostgresFenceStore(pool, o),
    {},
    'now, schema, timeoutMs, effectTimeoutMs',
  ],
  ['PostgresLeaseStore', (o) => new PostgresLeaseStore(pool, o), {}, 'now, schema, timeoutMs'],
  [
    'MysqlFenceStore',
    (o) => new MysqlFenceStore(pool, o),
    {},
    'now, timeoutMs, database, tablePrefix, effectTimeoutMs',
  ],
  [
    'MysqlLeaseStore',
    (o) => new MysqlLeaseStore(pool, o),
    {},
    'now, timeoutMs, database, tablePrefix',
  ],
  ['RedisFenceStore', (o) => new RedisFenceStore(redis, o), {}, 'now, prefix, timeoutMs'],
  ['RedisLeaseStore', (o) => new RedisLeaseStore(redis, o), {}, 'now, prefix, timeoutMs'],
  ['HttpLeaseStore', (o) => new HttpLeaseStore(service, o), {}, 'fetch, headers, timeoutMs'],
  ['httpDestination', (o) => httpDestination(service, o), {}, 'fetch, headers, timeoutMs'],
  ['fenceRoutes', (o) => fenceRoutes(guard, o), none, 'scope'],
  ['leaseRoutes', (o) => leaseRoutes(leases, o), none, ''],
  [
    'fencing',
    (o) => fencing(guard, o),
    {},
    'protect, mode, scope, jobId, verifyToken, requireOperationId, fingerprint, recordable, ' +
      'errorsMean, deadlineMs, onUnknown, afterOverdue, maxBodyBytes',
  ],
  ['fencingErrors', (o) => fencingErrors(o), {}, ''],
]

describe.each(takers)('the options of %s', (_, take, needed, optional) => {
  const names = [...Object.keys(needed), ...optional.split(', ').filter((name) => name !== '')]

  it('one that there is not is refused at once: it may be a check that is off', () => {
    const known = names.join(', ') || 'none'
    const says = new TypeError(`there is no option timeOutMs (known: ${known})`)
    expect(() => take(anything({ ...needed, timeOutMs: 1 }))).toThrow(says)
    // Not one of those that every object has.
    expect(() => take(anything({ ...needed, toString: 1 }))).toThrow('no option toString')
  })

  it.each([7, 'options', ['options'], () => ({})])('must be an object: %j', (options) => {
    const says = /^options must be an object, not (number|string|an array|function)$/
    expect(() => take(anything(options))).toThrow(TypeError)
    expect(() => take(anything(options))).toThrow(says)
  })

  it('may be undefined, each of them', () => {
    const absent = Object.fromEntries(names.map((name) => [name, undefined]))
    expect(() => take(anything({ ...absent, ...needed }))).not.toThrow()
  })

  it('may be members of an instance, whose methods are none', () => {
    class Settings {
      log() {}
    }
    expect(() => take(anything(Object.assign(new Settings(), needed)))).not.toThrow()
  })
})

describe('what is refused has done nothing', () => {
  it('the probe sends nothing', async () => {
    const write = () => expect.fail('it wrote')
    const call = probeDestination(anything({ baseUrl: service, write, retries: 1 }))
    await expect(call).rejects.toThrow('there is no option retries (known: baseUrl, write, newJob,')
    await expect(probeDestination(anything(undefined))).rejects.toThrow('options must be an object')
  })

  it('a store of SQLite sets up no tables', () => {
    for (const Store of [SqliteFenceStore, SqliteLeaseStore]) {
      const db = open()
      expect(() => new Store(db, anything({ busyTimeout: 1 }))).toThrow('no option busyTimeout')
      expect(db.prepare('SELECT count(*) FROM sqlite_schema').pluck().get()).toBe(0)
    }
  })

  it('openSqlite makes no file', () => {
    const path = temporaryFile()
    expect(() => openSqlite(path, anything({ readonly: true }))).toThrow('no option readonly')
    expect(existsSync(path)).toBe(false)
  })
})

describe('what is given in place of the other is told what is needed', () => {
  const fences = guard.store
  const wrong: [says: string, call: () => unknown][] = [
    ['fenceRoutes needs a WriteGuard', () => fenceRoutes(anything(fencing(guard)), none)],
    ['fenceRoutes needs a WriteGuard', () => fenceRoutes(anything(fences), anything(undefined))],
    ['fenceRoutes needs a WriteGuard', () => fenceRoutes(anything(undefined), none)],
    ['leaseRoutes needs a lease store', () => leaseRoutes(anything(guard), none)],
    ['leaseRoutes needs a lease store', () => leaseRoutes(anything(null), none)],
    ['fencing needs a WriteGuard', () => fencing(anything(fences))],
    ['fencing needs a WriteGuard', () => fencing(anything(guard.bind(anything({}))))],
    ['baseUrl must be an absolute URL', () => httpDestination(anything(undefined))],
    ['baseUrl must be an absolute URL', () => httpDestination(anything(null))],
    ['baseUrl must be an absolute URL', () => new HttpLeaseStore('not a url')],
    ['baseUrl must be an absolute URL', () => new HttpLeaseStore(anything(leases))],
  ]
  it.each(wrong)('%s', (says, call) => {
    expect(call).toThrow(TypeError)
    expect(call).toThrow(says)
  })

  const stores = [undefined, null, 'leases.db', guard].map((store) => ({ store }))
  it.each(stores)('runWithLease, %#', async ({ store }) => {
    const call = runWithLease(anything(store), run, () => expect.fail('it ran'))
    await expect(call).rejects.toThrow(TypeError)
    await expect(call).rejects.toThrow('runWithLease needs a lease store: what it was given has no')
  })

  it('whoever has the methods will do, whatever class it is of', async () => {
    const { claim, renew, complete, release } = leases
    const bound = { claim, renew, complete, release }
    const own = new Proxy(bound, {
      get: (target, name: keyof typeof bound) => target[name].bind(leases),
    })
    const outcome = await runWithLease(anything(own), run, () => 'done')
    expect(outcome).toMatchObject({ status: 'completed', value: 'done' })
    const twin = new Proxy(guard, {
      getPrototypeOf: () => Object.prototype,
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    expect(twin).not.toBeInstanceOf(WriteGuard)
    expect(fencing(twin)).toBeTypeOf('function')
    expect(fenceRoutes(twin, none)).toBeTypeOf('function')
  })
})
