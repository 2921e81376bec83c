/** Connections, tables and leases of PostgreSQL. */

import { type Mutant, mutantsOf } from './mutant.ts'
import { postgresFenceMutants } from './postgres-fence-mutants.ts'

const connections = mutantsOf('src/storage/postgres/postgres-transactions.ts', [
  [
    'the isolation is that of the session',
    'ISOLATION LEVEL READ COMMITTED READ WRITE',
    'READ WRITE',
  ],
  ['a session may be read only', 'READ COMMITTED READ WRITE', 'READ COMMITTED'],
  ['a wait for a lock outlasts the call', 'remainingMs * 0.8', 'remainingMs * 1.2'],
  [
    'what was given up goes on at the server',
    `\n    SET LOCAL statement_timeout = \${longestMs};`,
    '',
  ],
  [
    'a process that was stopped holds its job',
    `\n    SET LOCAL idle_in_transaction_session_timeout = \${longestMs};`,
    '',
  ],
  [
    'a commit is answered before it is durable',
    "'synchronous_commit', 'on'",
    "'synchronous_commit', 'off'",
  ],
  [
    'a stricter commit is made less so',
    "\n      WHERE current_setting('synchronous_commit') = 'off'",
    '',
  ],
  ['a setting of one unit stays in the session', "'on', true)", "'on', false)"],
  [
    'a connection that was given up still speaks',
    'if (this.#gone) return Promise',
    'if (false) return Promise',
  ],
  ['what did not come in time may still land', '      onLate()\n', ''],
  [
    'an effect may take as long as it likes',
    'return await bounded(work, longestMs, () => this.destroy())',
    'return await work',
  ],
  [
    'an effect uses up the time of its commit',
    '      this.#endsAt = performance.now() + afterwardsMs\n',
    '',
  ],
  [
    'a transaction is left open on a connection of the pool',
    '      await session.abandon()\n',
    '      session.release()\n',
  ],
  [
    'a connection in an unknown state goes back to the pool',
    `    } catch {
      this.destroy()`,
    `    } catch {
      this.release()`,
  ],
  [
    'a connection that was given up stays in the pool',
    'this.client.release(true)',
    'this.client.release()',
  ],
  [
    'a goodbye is awaited from a server that hangs',
    '    this.client.connection?.stream?.destroy?.()\n',
    '',
  ],
  [
    'a connection that comes too late is kept from the pool',
    'void connecting.then(giveUp)',
    'void connecting',
  ],
  [
    'who waits for a connection goes on after the store is closed',
    `    try {
      this.assertOpen()
`,
    `    try {
`,
  ],
  [
    'tables of any version are good',
    '      if (!setUp) await this.assertTables(session.query)\n',
    '',
  ],
  [
    'tables that were refused once are good',
    `    await assertTables(query, this.#options.component, this.#options.tables)
    this.#known = true`,
    `    this.#known = true
    await assertTables(query, this.#options.component, this.#options.tables)`,
  ],
  ['a connection that is lost ends the process', "      client.on('error', ignored)\n", ''],
  [
    'a pool that knows promises only is waited for, for ever',
    '    if (promised instanceof Promise) promised.then(take, reject)\n',
    '',
  ],
  [
    'each use of a connection leaves a listener on it',
    "  client.removeListener('error', ignored)\n",
    '',
  ],
])

const database = [
  ...mutantsOf('src/storage/postgres/postgres-database.ts', [
    ['time stands still while a lock is waited for', 'clock_timestamp()', 'now()'],
    ['a serialization failure is final', "state === '40001' || ", ''],
    ['a deadlock is final', " || state === '40P01'", ''],
    [
      'the error of a driver is not found in its wrapper',
      'error = error.cause',
      'error = undefined',
    ],
  ]),
  ...mutantsOf('src/storage/postgres/postgres-schema.ts', [
    [
      'two set up at once',
      '  await query(`SELECT pg_advisory_xact_lock',
      '  void (`SELECT pg_advisory_xact_lock',
    ],
    ['a server of any age is good', 'Number(found.server) < OLDEST_SERVER', 'false'],
    ['a database that cannot hold all ids is good', "found.encoding !== 'UTF8'", 'false'],
    [
      'ids are compared as the database collates',
      'job_id     text    COLLATE "C" NOT NULL',
      'job_id     text    COLLATE "und-x-icu" NOT NULL',
    ],
  ]),
]

const leases = [
  ...mutantsOf('src/storage/postgres/postgres-lease-store.ts', [
    [
      'a lease is read before it is locked',
      `      await statements.lock(jobId)
      // A later statement than the lock wait, for the row and for the time.
      const { row, now } = await statements.find(jobId)`,
      `      const { row, now } = await statements.find(jobId)
      await statements.lock(jobId)`,
    ],
    [
      'a lease that the database undid is the end',
      'this.#transactions.run(work, options), isUndone)',
      'this.#transactions.run(work, options), () => false)',
    ],
    ['what is not claimed leaves a row', "put === undefined ? 'ROLLBACK' : 'COMMIT'", "'COMMIT'"],
  ]),
  ...mutantsOf('src/storage/postgres/postgres-lease-statements.ts', [
    [
      'the row of a lease is not locked',
      'WHERE job_id = $1::text FOR UPDATE`',
      'WHERE job_id = $1::text`',
    ],
    [
      'of two first claims the second one takes the lease of the first',
      'ON CONFLICT (job_id) DO NOTHING RETURNING',
      `ON CONFLICT (job_id) DO UPDATE SET generation = 0, status = 'released', owner = NULL,
        lease_id = NULL, ttl = NULL, lease_until = NULL, ended_by = 'operator' RETURNING`,
    ],
    [
      'pruning leases waits for what is locked',
      'LIMIT $2::bigint FOR UPDATE SKIP LOCKED)',
      'LIMIT $2::bigint)',
    ],
    ['a process claims by its own clock', 'now?.() ?? null', 'now?.() ?? Date.now()'],
    [
      'that an ending was late is forgotten',
      'lapsed = $9::boolean',
      'lapsed = false AND $9::boolean',
    ],
    ['tombstones are listed', "(status = 'leased' OR ended_at IS NOT NULL)", 'true'],
    [
      'a lease is not expired at its very end',
      '(lease_until <= at.now) =',
      '(lease_until < at.now) =',
    ],
    [
      'pruning forgets generations',
      `(UPDATE \${lease} AS l SET owner = NULL, lease_id = NULL, ended_at = NULL
        WHERE`,
      `(DELETE FROM \${lease} AS l WHERE`,
    ],
    ['pruning takes what ended a moment too late', 'ended_at <= (SELECT', 'ended_at < (SELECT'],
    ['pruning of leases takes any', 'ORDER BY ended_at LIMIT', 'LIMIT'],
    [
      'pruning of one part of the leases takes from the others',
      '\n          AND (l.tableoid, l.ctid) IN (SELECT part, place FROM due)',
      '',
    ],
  ]),
]

export const postgresMutants: readonly Mutant[] = [
  ...postgresFenceMutants,
  ...connections,
  ...database,
  ...leases,
]
