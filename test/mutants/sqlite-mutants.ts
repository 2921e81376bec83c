/** Transactions, savepoints, keys and the group commit of the SQLite engine. */

import { type Mutant, mutantsOf } from './mutant.ts'

const transactions = [
  ...mutantsOf('src/storage/sqlite/sqlite-transaction.ts', [
    ['transactions begin without the lock', "'BEGIN IMMEDIATE'", "'BEGIN'"],
    [
      'what a failed rollback left gets into the next commit',
      'if (this.#open) this.rollback()',
      'if (this.#open) return',
    ],
    [
      'an iterator that is left open keeps the transaction open',
      '      if (!isOccupied(error)) throw error\n',
      '      throw error\n',
    ],
    [
      'once an iterator was left open the driver checks nothing any more',
      '        this.#db.unsafeMode(false)\n',
      '',
    ],
    ['a rollback is taken for a commit', '=== this.#mine', '!== this.#mine'],
  ]),
  ...mutantsOf('src/storage/sqlite/sqlite-writer.ts', [
    [
      'answers go out before the commit',
      `    try {
      this.#transaction.commit()`,
      `    for (const { ticket, value } of members) ticket.resolve(value)
    try {
      this.#transaction.commit()`,
    ],
    [
      'a transaction of the user is joined',
      `    if (this.insideTransaction) {
      return { status: 'busy'`,
      `    if (this.#closed) {
      return { status: 'busy'`,
    ],
    [
      'a failed commit is answered as applied',
      'for (const { ticket } of members) ticket.reject(unavailable(error))',
      'for (const { ticket, value } of members) ticket.resolve(value)',
    ],
    [
      'a failed group is not rolled back',
      `      this.#transaction.rollback()
    } catch (failure) {
      publishFault(`,
      `    } catch (failure) {
      publishFault(`,
    ],
    [
      'an effect may call the guard again',
      'if (!this.#running) return',
      'if (this.#maxGroup > 0) return',
    ],
    [
      'what is not committed is read',
      '    if (this.#db.inTransaction) return this.submit(read)\n',
      '',
    ],
    [
      'who spoiled a commit costs the others theirs',
      'if (members.length > 1) for (const { ticket } of members) this.#alone.add(ticket.work)',
      'if (members.length > 1) return this.#giveUp(members, error)',
    ],
  ]),
  ...mutantsOf('src/storage/group-commit.ts', [
    [
      'closing leaves calls queued',
      'for (const ticket of this.#waiting.splice(0)) {',
      'for (const ticket of [] as Ticket<Work>[]) {',
    ],
    ['a closed queue takes calls', 'if (this.#closed) return', 'if (this.#retryMs < 0) return'],
    ['the last call runs first', 'return this.#waiting.shift()', 'return this.#waiting.pop()'],
    [
      'what is put back runs last',
      '[...tickets, ...this.#waiting]',
      '[...this.#waiting, ...tickets]',
    ],
    ['a busy store is waited for without end', 'this.#withdrawExpired(round.reason)\n', ''],
    [
      'what was withdrawn runs all the same',
      '    this.#waiting = this.#waiting.filter((ticket) => ticket.expiresAt > now)\n',
      '',
    ],
  ]),
]

const fences = [
  ...mutantsOf('src/storage/sqlite/sqlite-fence-store.ts', [
    [
      'the fence is not put',
      '  if (step.fence !== undefined) statements.putFence(job, step.fence)\n',
      '',
    ],
    [
      'the fence is rolled back with the effect',
      `  if (step.fence !== undefined) statements.putFence(job, step.fence)
  const { action } = step
`,
      `  const { action } = step
  if (action.kind === 'apply' && spoiled === undefined) {
    const effect = runEffect(db, statements, unit, action)
    if (effect.status === 'threw') return { answer: step.answer, effect }
    if (step.fence !== undefined) statements.putFence(job, step.fence)
    return { answer: step.answer, effect }
  }
  if (step.fence !== undefined) statements.putFence(job, step.fence)
`,
    ],
    [
      'an effect that throws is not undone',
      `      undo.run()
      release.run()
    } catch {`,
      `      release.run()
    } catch {`,
    ],
    [
      'an effect that throws spoils its group',
      "    return { status: 'threw', error }\n",
      '    throw error\n',
    ],
    ['an effect leaves no record', '    statements.putOperation(job, recorded, record)\n', ''],
    [
      'a result is not recorded',
      'if (recorded !== undefined && text !== undefined) statements.setResult(job, recorded, text)',
      '',
    ],
    [
      'report mode records what it let through',
      'action.unrecorded ? undefined : operationId',
      'operationId',
    ],
    [
      'an effect that ended the transaction goes unnoticed',
      '    if (!db.inTransaction) throw new TransactionEnded()\n',
      '',
    ],
    ['within judges an old snapshot', '      statements.lock(unit.job)\n', ''],
    ['within works outside of a transaction', 'if (!tx.inTransaction) {', 'if (false) {'],
    [
      'within leaves half of what failed',
      `        undo.run()
        release.run()`,
      '        release.run()',
    ],
    [
      'what must be durable is part of a transaction that can be undone',
      "unit.insideTransaction === 'refuse' && this.#writer.insideTransaction",
      'this.#closed',
    ],
    ['a reservation is not put', "if (action.kind === 'put')", 'if (false)'],
    [
      'what was not applied is not deleted',
      "    if (action.kind === 'delete') statements.deleteOperation(job, operationId)\n",
      '',
    ],
  ]),
  ...mutantsOf('src/storage/sqlite/sqlite-fence-sql.ts', [
    [
      'fences are keyed without their scope',
      'ON f.scope = k.scope AND f.job_id = k.job_id',
      'ON f.job_id = k.job_id',
    ],
    [
      'fences are keyed without their job',
      'ON f.scope = k.scope AND f.job_id = k.job_id',
      'ON f.scope = k.scope',
    ],
    ['records are keyed without their scope', 'ON o.scope = k.scope AND o.job_id', 'ON o.job_id'],
    [
      'records are keyed without their job',
      'ON o.scope = k.scope AND o.job_id = k.job_id AND',
      'ON o.scope = k.scope AND',
    ],
    [
      'a job is held back by the operations of others',
      'u.scope = k.scope AND u.job_id = k.job_id AND u.attempt_id',
      'u.scope = k.scope AND u.attempt_id',
    ],
    [
      'unsettled operations are kept for a job without its scope',
      "'scope = ? AND job_id = ?'",
      "'? IS NOT NULL AND job_id = ?'",
    ],
    [
      'the newest operation in flight is taken for the oldest',
      'deadline > ? ORDER BY generation LIMIT 1',
      'deadline > ? ORDER BY generation DESC LIMIT 1',
    ],
    ['a deadline lies in the past', '} + ?`', '} - ?`'],
    ['what has not ended is pruned', 'o.applied_at <=', 'coalesce(o.applied_at, 0) <='],
    ['what is young is pruned', 'o.applied_at <=', 'o.applied_at >='],
    ['open jobs are pruned with the sealed', '(NOT ? OR EXISTS', '(NOT ? OR 1 OR EXISTS'],
    [
      'a fence that is there stays as it was',
      `ON CONFLICT (scope, job_id) DO UPDATE SET
      generation = excluded.generation, holder = excluded.holder,
      lease_id = excluded.lease_id, sealed = excluded.sealed`,
      'ON CONFLICT (scope, job_id) DO NOTHING',
    ],
  ]),
  ...mutantsOf('src/storage/sqlite/sqlite-fence-statements.ts', [
    ['nothing is ever overdue', 'const overdue = remainingMs === 0', 'const overdue = false'],
    ['a seal is not stored', 'sealed ? 1 : 0', '0'],
    ['a seal is not read', 'sealed: sealed === 1', 'sealed: false'],
    ['nobody waits for others', 'row[9] === 1 ? this', 'row[9] === 2 ? this'],
  ]),
]

const leases = [
  ...mutantsOf('src/storage/sqlite/sqlite-lease-store.ts', [
    [
      'the row is read before the lock is held',
      `    return this.#writer.submit(() => {
      const { row, now } = this.#statements.find(jobId)`,
      `    const { row, now } = this.#statements.find(jobId)
    return this.#writer.submit(() => {`,
    ],
    ['what a rule says is not put', 'if (put !== undefined) this', 'if (put === null) this'],
  ]),
  ...mutantsOf('src/storage/sqlite/sqlite-lease-statements.ts', [
    [
      'pruning forgets generations',
      'UPDATE writefence_lease SET owner = NULL, lease_id = NULL, ended_at = NULL',
      'DELETE FROM writefence_lease',
    ],
    ['who ended a lease is not stored', 'row.endedBy, row.lapsed', "'holder', row.lapsed"],
    ['that a lease had lapsed is not stored', 'row.lapsed ? 1 : 0', '0'],
  ]),
  ...mutantsOf('src/storage/sqlite/open-sqlite.ts', [
    ['commits are not durable', "'synchronous = FULL'", "'synchronous = NORMAL'"],
  ]),
  ...mutantsOf('src/storage/sqlite/sqlite-schema.ts', [
    [
      'tables of another version are used',
      'if (row !== undefined && row.version !== version) {',
      'if (row === null) {',
    ],
    [
      'a handle that is less durable is taken silently',
      "if (synchronous >= 2 && journal !== 'off' && journal !== 'memory') return",
      'if (synchronous >= 0) return',
    ],
    [
      'a store is set up inside a transaction',
      'if (db.open && db.inTransaction) {',
      'if (db.open && db.memory && !db.open) {',
    ],
  ]),
]

export const sqliteMutants: readonly Mutant[] = [...transactions, ...fences, ...leases]
