/** A PostgreSQL cluster of the run's own, whose server and backends are killed. */

import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, readdirSync } from 'node:fs'
import pg from 'pg'
import { PostgresFenceStore, PostgresLeaseStore } from '../../../src/storage/postgres/index.ts'
import { freePort } from '../../support/free-port.ts'
import { kill, startedBy } from '../leftovers.ts'
import { type Ground, type Server, tracesOf } from './server.ts'
import { oneOf, ownerOf, ServerProcess } from './server-process.ts'

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '60',
  shared_buffers: '32MB',
  // A crash takes nothing from the kernel: it need not look at every file again.
  recovery_init_sync_method: 'syncfs',
  log_min_messages: 'panic',
}

export async function postgresServer(ground: Ground): Promise<Server> {
  const { outside, clockEnv, random, fault } = ground
  const data = `${outside}/postgres`
  const owner = ownerOf('postgres')
  mkdirSync(data)
  chmodSync(outside, 0o755)
  if (owner !== undefined) chownSync(data, owner.uid, owner.gid)
  const options = { ...owner, cwd: outside }
  const bin = binaries()
  const init = ['-D', data, '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--locale=C']
  execFileSync(`${bin}initdb`, [...init, '--no-sync'], { ...options, stdio: 'ignore' })
  const port = await freePort()
  const address = { host: '127.0.0.1', port, user: 'postgres', database: 'postgres' }
  const admin = new pg.Pool({ ...address, max: 1, connectionTimeoutMillis: 500 })
  admin.on('error', () => {})
  const settings = Object.entries(SETTINGS).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const server = new ServerProcess({
    file: `${bin}postgres`,
    args: ['-D', data, '-p', String(port), ...settings],
    options: { ...options, env: { ...process.env, ...clockEnv } },
    // An immediate shutdown: its shared memory would outlive it otherwise.
    endSignal: 'SIGQUIT',
    ask: () => admin.query('SELECT 1'),
  })
  await server.untilUp()
  await setUp(admin, fault === 'unlogged')
  return {
    engine: 'postgres',
    where: JSON.stringify(address),
    harms: [
      { kind: 'kill', run: () => server.crash() },
      { kind: 'kill', run: () => killOne(server, admin, random) },
      { kind: 'cut', run: () => cutOne(admin, random) },
    ],
    async effects() {
      return tracesOf((await admin.query('SELECT * FROM effects ORDER BY seq')).rows)
    },
    async close() {
      await admin.end()
      await server.end()
    },
  }
}

/** Kills one backend: the server ends all others, and recovers. */
async function killOne(
  server: ServerProcess,
  admin: pg.Pool,
  random: () => number,
): Promise<boolean> {
  const pid = oneOf(await backends(admin), random)
  // The number may be somebody else's by now.
  if (pid === undefined || !startedBy(server.child).includes(pid)) return false
  kill(pid)
  await server.untilUp()
  return true
}

async function cutOne(admin: pg.Pool, random: () => number): Promise<boolean> {
  const pid = oneOf(await backends(admin), random)
  if (pid === undefined) return false
  await admin.query('SELECT pg_terminate_backend($1)', [pid]).catch(() => {})
  return true
}

/** Some of those that serve clients, rather such as are at work. */
async function backends(admin: pg.Pool): Promise<number[]> {
  const sql = `SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'
    AND pid <> pg_backend_pid() ORDER BY state = 'active' DESC, random() LIMIT 3`
  const { rows } = await admin.query<{ pid: number }>(sql).catch(() => ({ rows: [] }))
  return rows.map(({ pid }) => pid)
}

async function setUp(admin: pg.Pool, unlogged: boolean): Promise<void> {
  await admin.query(`CREATE TABLE effects (seq bigint GENERATED ALWAYS AS IDENTITY,
    job text NOT NULL, operation text NOT NULL, generation bigint NOT NULL, lease text NOT NULL,
    nonce text NOT NULL); CREATE INDEX ON effects (job, operation)`)
  await new PostgresFenceStore(admin).createSchema()
  await new PostgresLeaseStore(admin).createSchema()
  if (unlogged) await admin.query('ALTER TABLE writefence_operation SET UNLOGGED')
}

/** Where Debian puts what is not for users; elsewhere the search path has it. */
function binaries(): string {
  const folder = '/usr/lib/postgresql'
  try {
    const versions = readdirSync(folder).sort((a, b) => Number(a) - Number(b))
    return `${folder}/${versions.at(-1)}/bin/`
  } catch {
    return ''
  }
}
