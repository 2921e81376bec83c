/** Connections, tables and leases of MariaDB and MySQL. */

import { type Mutant, mutantsOf } from './mutant.ts'
import { mysqlFenceMutants } from './mysql-fence-mutants.ts'

const connections = [
  ...mutantsOf('src/storage/mysql/mysql-transactions.ts', [
    ['a deadlock is final', 'repeats(error) || isUndone(error)', 'repeats(error)'],
    ['a session may be read only', "['START TRANSACTION READ WRITE'],", "['START TRANSACTION'],"],
    ['reads wait for writes', "    'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ',\n", ''],
    [
      'a sweep stops the inserts of live traffic',
      "    'SET TRANSACTION ISOLATION LEVEL READ COMMITTED',\n",
      '',
    ],
    ['a transaction left open by the user stops reads', "read: [\n    'COMMIT',\n", 'read: [\n'],
    [
      'a process that was stopped holds its job',
      "      if (kind === 'write') await session.limitIdle(this.#longestIdleMs, server)\n",
      '',
    ],
    [
      'a transaction is left open on a connection of the pool',
      '      await rollBack(session, error)\n      throw error',
      '      throw error',
    ],
    [
      'what was not to be kept is left open on a connection of the pool',
      '    else await rollBack(session, undefined)\n',
      '',
    ],
    [
      'a connection whose commit is not known goes back to the pool',
      '    if (!isUndone(error)) session.destroy(error)\n',
      '',
    ],
    [
      'a connection that could not be rolled back goes back to the pool',
      '    session.destroy(failure)\n',
      '',
    ],
    [
      'the old primary is asked again after a failover',
      '  if (isReadOnly(error)) return session.destroy(error)\n',
      '',
    ],
    [
      'who waits for a connection goes on after the store is closed',
      '      this.assertOpen()\n      return await work(session)',
      '      return await work(session)',
    ],
    ['a connection keeps what the store has set', '      await session.restore()\n', ''],
    [
      'a connection that comes too late is kept from the pool',
      '(connection) => connection.release(),\n        () => {},',
      '() => {},\n        () => {},',
    ],
    [
      'a pool that gives no connection is waited for, for ever',
      'await Promise.race([asked, late])',
      'await asked',
    ],
  ]),
  ...mutantsOf('src/storage/mysql/mysql-session.ts', [
    [
      'a wait for a lock lasts as long as the session has it',
      `\`SET STATEMENT \${limit} FOR \${sql}\``,
      'sql',
    ],
    [
      'a connection keeps the wait of the store',
      "      if (this.#usable) await this.run('SET innodb_lock_wait_timeout = @writefence_wait')\n",
      '',
    ],
    [
      'what did not come in time may still land',
      '        this.destroy(error)\n        reject',
      '        reject',
    ],
    [
      'a connection that commits nothing by itself is outside of a transaction',
      '(status & IN_TRANSACTION) !== 0 || (status & AUTOCOMMIT) === 0',
      '(status & IN_TRANSACTION) !== 0',
    ],
    [
      'statements of an effect that was given up are never answered',
      '    cut(this.connection, reason instanceof Error ? reason : new Error(String(reason)))\n',
      '',
    ],
    ['a pool may have its rows otherwise', '    rowsAsArray: false,\n', ''],
  ]),
  ...mutantsOf('src/storage/mysql/mysql-database.ts', [
    ['the server says that a deadlock is no matter', 'ERRORS.deadlock, ERRORS', 'ERRORS'],
    [
      'a row that has changed is a failure',
      'ERRORS.deadlock, ERRORS.rowHasChanged',
      'ERRORS.deadlock',
    ],
    ['time is that of the zone of the session', 'UTC_TIMESTAMP(3)', 'NOW(3)'],
    ['time is cut to seconds', 'UTC_TIMESTAMP(3)', 'UTC_TIMESTAMP()'],
    [
      'the error of a driver is not found in its wrapper',
      "'cause' in each ? each.cause : undefined",
      'undefined',
    ],
  ]),
  ...mutantsOf('src/storage/mysql/mysql-tables.ts', [
    ['the snapshot is taken before the job is locked', "}' LOCK IN SHARE MODE`", "}'`"],
    [
      'tables of any version are good',
      '    this.#assertVersion(await this.#versionOf(session))\n',
      '',
    ],
    ['tables that cannot undo are good', '    await this.#assertTransactional(session)\n', ''],
    [
      'tables that were refused once are good',
      'const server = await readServer(session)\n',
      'const server = await readServer(session)\n    this.#server = server\n',
    ],
  ]),
]

const leases = [
  ...mutantsOf('src/storage/mysql/mysql-lease-store.ts', [
    [
      'a lease is read before it is locked',
      `        await statements.lock(session, jobId, server)
        const { row, now } = await statements.find(session, jobId)`,
      `        const { row, now } = await statements.find(session, jobId)
        await statements.lock(session, jobId, server)`,
    ],
    ['a lease that is over before it is written is final', 'error instanceof TooLate', 'false'],
    [
      'a repetition rests on what may be lost',
      '        await statements.touch(session, jobId)\n',
      '',
    ],
    [
      'what is not claimed leaves a row',
      'if (row === undefined || isRefusal(answer)) return { value: answer, commit: false }',
      'if (isRefusal(answer) && row !== undefined) return { value: answer, commit: false }',
    ],
  ]),
  ...mutantsOf('src/storage/mysql/mysql-lease-statements.ts', [
    [
      'a lease may be over before it is written',
      `\`AND \${SQL_NOW} < \${leased.leaseUntil}\``,
      "''",
    ],
    [
      'a process claims by its own clock',
      'String(this.#given?.() ?? SQL_NOW)',
      'String(this.#given?.() ?? Date.now())',
    ],
    ['that an ending was late is forgotten', 'ended?.lapsed ? 1 : 0', '0'],
    ['tombstones are listed', "(status = 'leased' OR ended_at IS NOT NULL)", 'TRUE'],
    ['a lease is not expired at its very end', "expired ? '<=' : '>'", "expired ? '<' : '>='"],
    [
      'pruning forgets generations',
      `\`UPDATE \${this.#lease} SET owner = NULL, lease_id = NULL, ended_at = NULL,
         revision = revision + 1
       WHERE`,
      `\`DELETE FROM \${this.#lease} WHERE`,
    ],
    ['pruning takes what ended a moment too late', 'WHERE ended_at <= ', 'WHERE ended_at < '],
    ['pruning of leases takes any', ' ORDER BY ended_at LIMIT', ' LIMIT'],
    ['a row that stands for none is a lease', '  if (generation === 0) return undefined\n', ''],
  ]),
]

export const mysqlMutants: readonly Mutant[] = [...mysqlFenceMutants, ...connections, ...leases]
