/** Locks, snapshots and savepoints of the fences in PostgreSQL. */

import { type Mutant, mutantsOf } from './mutant.ts'

const units = mutantsOf('src/storage/postgres/postgres-unit.ts', [
  [
    'the job is read before it is locked',
    `  const id = await statements.lock(job)
  // A later statement than the lock wait: the snapshot of that one may be older than the lock.
  const view = await statements.view(job, operationId, unit.census ?? false)`,
    `  const view = await statements.view(job, operationId, unit.census ?? false)
  const id = await statements.lock(job)`,
  ],
  [
    'an effect that throws takes the fence with it',
    'await end(fence !== undefined)\n',
    'await end(false)\n',
  ],
  ['an effect that throws leaves what it did', 'ROLLBACK TO SAVEPOINT', 'SELECT 1 --'],
  [
    'the record goes in after the effect',
    `  if (recorded !== undefined) {
    const record = { status: 'applied', generation, fingerprint, result: undefined } as const
    await statements.putOperation(id, recorded, record)
  }
  let encoded: Encoded<R>
  try {
    encoded = await callback(() => effect(tx))
`,
    `  let encoded: Encoded<R>
  try {
    encoded = await callback(() => effect(tx))
    if (recorded !== undefined) {
      const record = { status: 'applied', generation, fingerprint, result: undefined } as const
      await statements.putOperation(id, recorded, record)
    }
`,
  ],
  [
    'an effect that the database undid is not run again',
    `    assertStorable(encoded.text)
  } catch (error) {
    throw repeatable && isUndone(error) ? error : new EffectFailed(error)`,
    `    assertStorable(encoded.text)
  } catch (error) {
    throw new EffectFailed(error)`,
  ],
  [
    'a deadlock at the commit is the end',
    `    // What the effect left behind: a statement that failed unseen, a deferred constraint.
    throw repeatable && isUndone(error) ? error : new EffectFailed(error)`,
    '    throw new EffectFailed(error)',
  ],
  [
    'that an effect ended the transaction goes unseen at its end',
    '    if (hasEnded(error)) throw new TransactionEnded()\n',
    '',
  ],
  ['a ROLLBACK of the effect goes unseen', "state === '25P01' || state", 'state'],
  [
    'a new transaction of the effect goes unseen',
    "=== '25P01' || state === '3B001'",
    "=== '25P01'",
  ],
  ['a NUL breaks the write in its own way', "if (text?.includes('\\0')) {", 'if (false) {'],
  [
    'a write that is only reported overwrites the record',
    'const recorded = unrecorded ? undefined : operationId',
    'const recorded = operationId',
  ],
])

const fences = [
  ...mutantsOf('src/storage/postgres/postgres-fence-statements.ts', [
    [
      'the row of a job is not locked',
      'AND job_id = $2::text FOR UPDATE`',
      'AND job_id = $2::text`',
    ],
    [
      'of two first writers the second one puts the fence back',
      'ON CONFLICT (scope, job_id) DO NOTHING RETURNING id',
      "ON CONFLICT (scope, job_id) DO UPDATE SET generation = 0, holder = 'none' RETURNING id",
    ],
    [
      'a record changes and the fence of its job does not',
      `putOperation: \`WITH \${touched}, \${at('$9')}`,
      `putOperation: \`WITH \${at('$9')}`,
    ],
    [
      'a record goes and the fence of its job does not change',
      `deleteOperation: \`WITH \${touched}
      DELETE`,
      'deleteOperation: `DELETE',
    ],
    [
      'a process decides by its own clock what is overdue',
      'now?.() ?? null',
      'now?.() ?? Date.now()',
    ],
    ['what has just become overdue holds nobody back', `(\${other('<=')})`, `(\${other('<')})`],
    [
      'what has just become overdue is counted as in flight',
      '.deadline <= at.now',
      '.deadline < at.now',
    ],
    [
      'an operation holds itself back',
      '\n        AND p.operation_id IS DISTINCT FROM $3::text',
      '',
    ],
    ['any of the older operations is named', '\n      ORDER BY p.generation LIMIT 1', ' LIMIT 1'],
    [
      'who takes an attempt over leaves its id',
      '        attempt_id = excluded.attempt_id, deadline',
      '        deadline',
    ],
    [
      'who takes an attempt over leaves its generation',
      '        generation = excluded.generation, fingerprint',
      '        fingerprint',
    ],
    ['pruning takes what has not ended', 'AND o.applied_at <=', 'OR o.deadline <='],
    ['pruning waits for whoever has a record', 'FOR UPDATE OF o SKIP LOCKED', 'FOR UPDATE OF o'],
    ['pruning takes any records', 'ORDER BY o.applied_at LIMIT $2::bigint', 'LIMIT $2::bigint'],
    ['records of jobs that are open go with those of sealed ones', ' AND f.sealed))', '))'],
    [
      'pruning of one part of a table takes from the others',
      '\n        AND (o.tableoid, o.ctid) IN (SELECT part, place FROM due)',
      '',
    ],
    ['a seal is not kept', 'sealed = $5::boolean WHERE', 'sealed = sealed WHERE'],
  ]),
  ...mutantsOf('src/storage/postgres/postgres-fence-store.ts', [
    [
      'a unit that the database undid is not repeated',
      'return await retry(run, isUndone)',
      'return await run(false)',
    ],
    [
      'an effect that always deadlocks takes the fence with it',
      'repeatable: !last',
      'repeatable: true',
    ],
    [
      'an effect that ended its transaction is run again',
      'carryOut(this.#own(session, true), unit, spoiled)',
      'carryOut(this.#own(session, true), unit)',
    ],
    [
      'an effect that ended its transaction leaves no fence',
      '      return this.#run((session) => carryOut(this.#own(session, true), unit, spoiled))',
      '      throw spoiled.error',
    ],
    [
      'constraints that were put off break the commit',
      '`SET CONSTRAINTS ALL IMMEDIATE; RELEASE',
      '`RELEASE',
    ],
    [
      'the commit does not ask whether it is its own transaction',
      'IMMEDIATE; RELEASE SAVEPOINT',
      'IMMEDIATE; SELECT 1 AS',
    ],
    ['what changes nothing is committed', "            : 'ROLLBACK',", "            : 'COMMIT',"],
    [
      'what changes nothing leaves its row to the user',
      'if (!changed) await query(',
      'if (changed === undefined) await query(',
    ],
    [
      'writes of one job take the connections of all',
      'this.#jobs.take(unit.job, (timeoutMs) => this.#carryOut(unit, timeoutMs))',
      'this.#carryOut(unit, this.#timeoutMs)',
    ],
    [
      'a wait for a turn costs no time of the call',
      'await this.#run(run, { timeoutMs })',
      'await this.#run(run)',
    ],
    [
      'units in one transaction of the user interleave',
      'this.#turns.take(tx, () => this.#join(tx, unit))',
      'this.#join(tx, unit)',
    ],
    [
      'an effect ends before what it joined to its transaction',
      'session.pause(this.#turns.inside(tx, effect), ',
      'session.pause((async () => effect())(), ',
    ],
    [
      'an effect within waits for itself',
      '(effect) => this.#turns.inside(tx, effect)',
      '(effect) => effect()',
    ],
    [
      'within takes a client outside of a transaction',
      "if (sqlState(error) !== '25P01') throw unavailable(error)\n",
      "if (sqlState(error) === '25P01') return\n",
    ],
    [
      'a store that fails leaves its part in the transaction of the user',
      'await scope.query(`ROLLBACK TO',
      'await scope.query(`SELECT 1 -- ROLLBACK TO',
    ],
    ['a unit inside the effect of another takes its savepoint', 'this.#turns.depth(tx)', "''"],
    [
      'within waits for a lock for ever',
      'bounded(send(text, values), this.#timeoutMs, () => {})',
      'send(text, values)',
    ],
    [
      'tables are not looked at within',
      'await this.#transactions.assertTables(scope.query)\n',
      '\n',
    ],
  ]),
]

export const postgresFenceMutants: readonly Mutant[] = [...units, ...fences]
