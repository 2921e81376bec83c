import { randomUUID } from 'node:crypto'
import { afterAll, expect, it } from 'vitest'
import { Etcd } from '../../examples/issuers/etcd.ts'
import * as postgres from '../../examples/issuers/postgres.ts'
import * as zookeeper from '../../examples/issuers/zookeeper.ts'
import { describeEngine, problemOf } from '../engines/engine.ts'
import { start } from '../processes/spawn.ts'
import { open, temporaryFile } from '../support/sqlite-destination.ts'
import type { holders } from './holders.ts'

const jobId = `writefence_${randomUUID().replaceAll('-', '')}`
const TIMEOUT = 60_000

/**
 * A leads and stands still until it has lost the job. B leads and is killed. C leads. Each of them
 * is a process, and so is the destination. `end` is what else it takes for the job to be lost.
 */
async function takeOver(issuer: keyof typeof holders, end = async () => {}) {
  const path = temporaryFile()
  const url = await start('../issuers/destination.ts', path).line()
  const worker = () => {
    const { process, line, tell } = start('../issuers/worker.ts', issuer, jobId, url)
    const writes = (operation: string) => {
      tell(operation)
      return line()
    }
    return { process, leads: line().then(Number), writes }
  }

  const a = worker()
  const first = await a.leads
  expect(await a.writes('a-1')).toBe('201 applied')

  const b = worker()
  a.process.kill('SIGSTOP')
  await end()
  const second = await b.leads
  expect(second).toBeGreaterThan(first)
  expect(await b.writes('b-1')).toBe('201 applied')

  // A goes on, and knows nothing.
  a.process.kill('SIGCONT')
  expect(await a.writes('a-2')).toBe('412 stale')

  const c = worker()
  b.process.kill('SIGKILL')
  const third = await c.leads
  expect(third).toBeGreaterThan(second)
  // An operation that B had done: C gets its record.
  expect(await c.writes('b-1')).toBe('201 replayed')
  expect(await c.writes('c-1')).toBe('201 applied')
  expect(await a.writes('a-3')).toBe('412 stale')

  const log = open(path).prepare('SELECT operation, generation FROM log ORDER BY rowid').all()
  expect(log).toEqual([
    { operation: 'a-1', generation: first },
    { operation: 'b-1', generation: second },
    { operation: 'c-1', generation: third },
  ])
}

const etcd = await problemOf(() => new Etcd().grant(1))
describeEngine('etcd', etcd, () => {
  it('a leader whose lease has expired is stale', () => takeOver('etcd'), TIMEOUT)
})

const session = zookeeper.connect()
const noSession = await problemOf(() => session)
describeEngine('ZooKeeper', noSession, () => {
  afterAll(async () => {
    const client = await session
    // The nodes of those who were killed are there until their sessions end, which they may do now.
    const names = await zookeeper.ask<string[]>((done) => client.getChildren(`/${jobId}`, done))
    const remove = (path: string) => zookeeper.ask((done) => client.remove(path, done))
    await Promise.allSettled(names.map((name) => remove(`/${jobId}/${name}`)))
    await remove(`/${jobId}`)
    client.close()
  })

  it('a holder whose session has expired is stale', () => takeOver('ZooKeeper'), TIMEOUT)
})

const operator = postgres.connect()
const noOperator = await problemOf(() => operator)
describeEngine('PostgreSQL', noOperator, () => {
  afterAll(async () => {
    const client = await operator
    await client.query(`DROP SEQUENCE ${jobId}`)
    await client.end()
  })

  it(
    'a holder whose connection has been ended is stale',
    async () => {
      const client = await operator
      await client.query(`CREATE SEQUENCE ${jobId}`)
      await takeOver('PostgreSQL', async () => {
        const { rows } = await client.query<{ pid: number }>(
          `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted
           AND (classid::bigint << 32 | objid::bigint) = hashtextextended($1, 0)`,
          [jobId],
        )
        expect(rows).toHaveLength(1)
        for (const { pid } of rows) await postgres.terminate(client, pid)
      })
    },
    TIMEOUT,
  )
})
