/** Locks, snapshots and savepoints of the fences in MariaDB and MySQL. */

import { type Mutant, mutantsOf } from './mutant.ts'

const units = mutantsOf('src/storage/mysql/mysql-unit.ts', [
  ['an effect that throws leaves what it did', '      await undo(session, savepoint, error)\n', ''],
  [
    'the record goes in after the effect',
    `    if (recorded !== undefined) {
      const record = { status: 'applied', generation, fingerprint, result: undefined } as const
      await this.#statements.putOperation(session, job, recorded, record, known)
    }
    const run = () => this.#turns.inside(connection, () => effect(connection))
`,
    `    const run = async () => {
      const encoded = await this.#turns.inside(connection, () => effect(connection))
      if (recorded !== undefined) {
        const record = { status: 'applied', generation, fingerprint, result: undefined } as const
        await this.#statements.putOperation(session, job, recorded, record, known)
      }
      return encoded
    }
`,
  ],
  [
    'a write that is only reported overwrites the record',
    'const recorded = unrecorded ? undefined : operationId',
    'const recorded = operationId',
  ],
  [
    'that an effect ended the transaction goes unseen',
    '    await releaseOrLose(session, savepoint)\n',
    '',
  ],
  [
    'a savepoint within takes the place of the one around it',
    "savepointOf('effect', this.#turns.depth(connection))",
    "savepointOf('effect', 0)",
  ],
  [
    'an effect whose transaction was undone is not run again',
    'isUndone(error) ? new',
    'false ? new',
  ],
  ['an effect that ended its transaction is run again', 'isUndone(error) ? new', 'true ? new'],
  [
    'a ROLLBACK that its effect kept quiet about is taken for a failure of the store',
    'if (!isSavepointGone(failure)) throw failure',
    'throw failure',
  ],
  [
    'an effect that costs its transaction is not left out',
    'if (terms.leftOut !== undefined) return',
    'if (terms.leftOut === null) return',
  ],
  [
    'a result that is too long breaks the write in its own way',
    '      assertFits(encoded.text, terms.server)\n',
    '',
  ],
  [
    'an effect ends before what it joined to its transaction',
    'this.#turns.inside(connection, () => effect(connection))',
    'Promise.resolve(connection).then(effect)',
  ],
  [
    'an effect may take as long as it likes',
    'await (terms.effectTimeoutMs === undefined',
    'await (terms !== undefined',
  ],
  [
    'a question leaves a row of a job that nobody knows',
    'const fenced = (fence ?? view.fence) !== undefined',
    'const fenced = true',
  ],
  ['a write without a token is rolled back', "fenced || effect?.status === 'returned'", 'fenced'],
])

const fences = [
  ...mutantsOf('src/storage/mysql/mysql-fence-statements.ts', [
    [
      'a verdict leaves its job untouched',
      "touch ? 'revision + 1' : 'revision'",
      "touch ? 'revision' : 'revision'",
    ],
    [
      'what has changed is asked of the snapshot',
      `WHERE \${keyOf(job)} FOR UPDATE\``,
      `WHERE \${keyOf(job)}\``,
    ],
    [
      'a process decides by its own clock what is overdue',
      'String(now?.() ?? SQL_NOW)',
      'String(now?.() ?? Date.now())',
    ],
    [
      'what has just become overdue holds nobody back',
      `oldest(\`deadline <= \${now}\`)`,
      `oldest(\`deadline < \${now}\`)`,
    ],
    [
      'what has just become overdue is counted as in flight',
      'WHEN deadline <= $',
      'WHEN deadline < $',
    ],
    ['an operation holds itself back', `AND operation_id <> \${own} AND \${when}`, `AND \${when}`],
    [
      'any of the older operations is named',
      `\${when} ORDER BY generation LIMIT 1`,
      `\${when} LIMIT 1`,
    ],
    [
      'what holds a job back is looked for in another scope',
      `WHERE status = 'in_flight'\n        AND \${keyOf(job)} AND`,
      `WHERE status = 'in_flight'\n        AND job_id = \${bytes(job.jobId)} AND`,
    ],
    [
      'pruning takes what has not ended',
      'WHERE applied_at <= ',
      'WHERE COALESCE(applied_at, 0) <= ',
    ],
    ['pruning takes any records', 'ORDER BY applied_at LIMIT', 'LIMIT'],
    ['records of jobs that are open go with those of sealed ones', ' AND f.sealed = 1)', ')'],
    ['a row that stands for none is a fence', '  if (generation === 0) return undefined\n', ''],
  ]),
  ...mutantsOf('src/storage/mysql/mysql-fence-store.ts', [
    [
      'the job is read before it is locked',
      `        await this.#statements.lock(session, unit.job, server, true)
        const { view } = await this.#read(session, unit)`,
      `        const { view } = await this.#read(session, unit)
        await this.#statements.lock(session, unit.job, server, true)`,
    ],
    ['an effect that always deadlocks takes the fence with it', 'each.ended || last', 'each.ended'],
    [
      'an effect that ended its transaction leaves no fence',
      '        return lost.push(error) > 0',
      '        return lost.push(error) > 0 && !error.ended',
    ],
    [
      'a first writer within locks the gap that he writes to',
      '    await this.#statements.lock(session, job, server, false)\n',
      '',
    ],
    [
      'its own change is taken for what others have changed',
      'lock(session, job, server, false)',
      'lock(session, job, server, true)',
    ],
    ['a snapshot from before a change is written on', 'if (revision !== latest) {', 'if (false) {'],
    [
      'a joined write leaves its job untouched',
      '    await this.#statements.lock(session, job, server, true)\n    return',
      '    return',
    ],
    [
      'within takes a connection outside of a transaction',
      'if (!(await session.savepoint(savepoint))) {',
      'await session.savepoint(savepoint)\n      if (false) {',
    ],
    [
      'a joined write that fails leaves its part to be committed',
      '      await session.undoTo(savepoint)\n',
      '',
    ],
    [
      'writes of one job take the connections of all',
      'this.#jobs.take(unit.job, () => this.#carryOut(unit))',
      'this.#carryOut(unit)',
    ],
    [
      'units in one transaction of the user interleave',
      'this.#turns.take(tx, () => this.#join(tx, unit))',
      'this.#join(tx, unit)',
    ],
  ]),
]

export const mysqlFenceMutants: readonly Mutant[] = [...units, ...fences]
