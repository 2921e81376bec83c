import { beforeEach, expect, it } from 'vitest'
import {
  type FenceState,
  type FencingToken,
  type LeaseStore,
  runWithLease,
  WriteGuard,
} from 'writefence'
import { openSqlite, SqliteFenceStore, SqliteLeaseStore } from 'writefence/sqlite'
import { describeEngine } from './engine.ts'
import { PostgresBench } from './postgres-bench.ts'

const bench = await PostgresBench.open('cross')

/** A place that effects go to, with its fence beside them. */
interface Place {
  readonly guard: { advance(token: FencingToken): Promise<FenceState> }
  write(token: FencingToken, text: string): Promise<unknown>
  log(): Promise<string[]>
}

function onPostgres(): Place {
  const guard = new WriteGuard(bench.fences())
  return {
    guard,
    write: (token, text) =>
      guard.write({ token, operationId: 'salary' }, (tx) => bench.append(tx, text)),
    log: () => bench.log(),
  }
}

function onSqlite(): Place {
  const db = openSqlite(':memory:')
  db.exec('CREATE TABLE log (text TEXT NOT NULL)')
  const insert = db.prepare('INSERT INTO log (text) VALUES (?)')
  const guard = new WriteGuard(new SqliteFenceStore(db))
  return {
    guard,
    write: (token, text) =>
      guard.write({ token, operationId: 'salary' }, () => void insert.run(text)),
    log: async () => db.prepare<[], string>('SELECT text FROM log').pluck().all(),
  }
}

type Issuer = (now: () => number) => LeaseStore
const leasesOn: Record<string, Issuer> = {
  PostgreSQL: (now) => bench.leases({ now }),
  SQLite: (now) => new SqliteLeaseStore(openSqlite(':memory:'), { now }),
}

describeEngine('leases on one engine, fences on others', bench.problem, () => {
  beforeEach(() => bench.empty())

  it.each(Object.entries(leasesOn))(
    'with leases on %s, a worker that pauses is refused by destinations on either engine',
    async (_, issuer) => {
      let now = Date.now()
      const leases = issuer(() => now)
      const destinations = [onPostgres(), onSqlite()]
      const job = { jobId: 'job', ttlMs: 60_000, destinations: destinations.map((d) => d.guard) }

      const paused = await runWithLease(leases, { ...job, owner: 'A' }, async (leaseOfA) => {
        now += 61_000
        const next = await runWithLease(leases, { ...job, owner: 'B' }, async (leaseOfB) => {
          for (const each of destinations) await each.write(leaseOfB, 'by B')
        })
        expect(next).toMatchObject({ status: 'completed', generation: 2 })
        const late = destinations.map((each) => each.write(leaseOfA, 'by A'))
        for (const each of await Promise.allSettled(late)) {
          expect(each).toMatchObject({ reason: { code: 'stale', highestGeneration: 2 } })
        }
        await late[0]
      })

      expect(paused).toMatchObject({ status: 'lost', reason: 'fenced' })
      for (const each of destinations) expect(await each.log()).toEqual(['by B'])
      expect(await leases.get('job')).toMatchObject({ status: 'completed', generation: 2 })
    },
  )
})
