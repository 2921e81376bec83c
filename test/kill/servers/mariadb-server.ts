/** A MariaDB of the run's own, which is killed. */

import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync } from 'node:fs'
import { createPool, type Pool, type RowDataPacket } from 'mysql2/promise'
import { MysqlFenceStore, MysqlLeaseStore } from '../../../src/storage/mysql/index.ts'
import { freePort } from '../../support/free-port.ts'
import { type Ground, type Server, tracesOf } from './server.ts'
import { oneOf, ownerOf, ServerProcess } from './server-process.ts'

export async function mariadbServer({ outside, random, fault }: Ground): Promise<Server> {
  const data = `${outside}/mariadb`
  const owner = ownerOf('mysql')
  mkdirSync(data)
  chmodSync(outside, 0o755)
  if (owner !== undefined) chownSync(data, owner.uid, owner.gid)
  const options = { ...owner, cwd: outside }
  const init = ['--no-defaults', `--datadir=${data}`, '--auth-root-authentication-method=normal']
  const quietly = { ...options, stdio: 'ignore' } as const
  execFileSync('/usr/bin/mariadb-install-db', [...init, '--skip-test-db'], quietly)
  const port = await freePort()
  const address = { host: '127.0.0.1', port, database: 'test' }
  const admin = createPool({ ...address, database: '', user: 'root', connectionLimit: 1 })
  const server = new ServerProcess({
    file: '/usr/sbin/mariadbd',
    args: [
      '--no-defaults',
      `--datadir=${data}`,
      `--socket=${data}/socket`,
      `--port=${port}`,
      '--bind-address=127.0.0.1',
      '--skip-name-resolve',
      '--innodb-buffer-pool-size=32M',
      `--innodb-flush-log-at-trx-commit=${fault === 'lazy-log' ? 0 : 1}`,
    ],
    options,
    ask: () => admin.query('SELECT 1'),
  })
  await server.untilUp()
  await setUp(admin, address)
  return {
    engine: 'mariadb',
    where: JSON.stringify(address),
    harms: [
      { kind: 'kill', run: () => server.crash() },
      { kind: 'cut', run: () => cutOne(admin, random) },
    ],
    async effects() {
      const [rows] = await admin.query<RowDataPacket[]>('SELECT * FROM test.effects ORDER BY seq')
      return tracesOf(rows)
    },
    async close() {
      await admin.end()
      await server.end()
    },
  }
}

async function cutOne(admin: Pool, random: () => number): Promise<boolean> {
  const sql = `SELECT ID FROM information_schema.PROCESSLIST
    WHERE USER LIKE 'bank-%' ORDER BY COMMAND = 'Query' DESC, rand() LIMIT 3`
  const [threads] = await admin.query<RowDataPacket[]>(sql).catch(() => [[]])
  const thread = oneOf(threads, random)
  if (thread === undefined) return false
  await admin.query(`KILL ${thread.ID}`).catch(() => {})
  return true
}

async function setUp(admin: Pool, address: object): Promise<void> {
  const users = ['bank-0', 'bank-1', 'leases'].map((name) => `'${name}'@'127.0.0.1'`)
  for (const statement of [
    'CREATE DATABASE IF NOT EXISTS test',
    `CREATE TABLE test.effects (seq BIGINT AUTO_INCREMENT PRIMARY KEY, job VARCHAR(64) NOT NULL,
      operation VARCHAR(64) NOT NULL, generation BIGINT NOT NULL, lease VARCHAR(64) NOT NULL,
      nonce VARCHAR(64) NOT NULL, INDEX (job, operation))`,
    ...users.map((user) => `CREATE USER ${user}`),
    ...users.map((user) => `GRANT ALL ON test.* TO ${user}`),
  ]) {
    await admin.query(statement)
  }
  const pool = createPool({ ...address, user: 'root', connectionLimit: 1 })
  await new MysqlFenceStore(pool).createSchema()
  await new MysqlLeaseStore(pool).createSchema()
  await pool.end()
}
