/** Rules 1 to 10: leases, and the worker that holds one. */

import { type Mutant, mutantsOf } from './mutant.ts'

const rules = mutantsOf('src/lease/lease-rules.ts', [
  [
    'a lease is claimable only after the moment of its expiry',
    'now < row.leaseUntil) {',
    'now <= row.leaseUntil) {',
  ],
  [
    'a live lease is claimed',
    "if (row?.status === 'leased' && now < row.leaseUntil) {",
    'if (false) {',
  ],
  [
    'a released generation comes back',
    'const generation = (row?.generation ?? 0) + 1',
    "const generation = (row?.generation ?? 0) + (row?.status === 'released' ? 0 : 1)",
  ],
  ['a generation is skipped', '(row?.generation ?? 0) + 1', '(row?.generation ?? 0) + 2'],
  ['a completed job is claimed', "if (row?.status === 'completed') {", 'if (false) {'],
  [
    'a lease is re-entrant by owner',
    'row.leaseId === leaseId && row.owner === owner',
    'row.owner === owner',
  ],
  [
    'a lease is re-entrant by leaseId alone',
    'row.leaseId === leaseId && row.owner === owner',
    'row.leaseId === leaseId',
  ],
  [
    'a repeated claim extends the lease',
    "return { answer: { status: 'claimed', lease: leaseOf(row) } }",
    `const put = { ...row, leaseUntil: now + ttlMs }
      return { answer: { status: 'claimed', lease: leaseOf(put) }, put }`,
  ],
  ['generations never run out', 'if (generation > MAX_GENERATION) {', 'if (false) {'],
  [
    'a clock set back prolongs a lease',
    'Math.min(row.leaseUntil, now + row.ttlMs)',
    'row.leaseUntil',
  ],
  [
    'a claim that loses moves the expiry',
    'Math.min(row.leaseUntil, now + row.ttlMs)',
    'Math.max(row.leaseUntil, now + row.ttlMs)',
  ],
  [
    'an expiry is a sum',
    '{ ...row, ttlMs, leaseUntil: now + ttlMs }',
    '{ ...row, ttlMs, leaseUntil: row.leaseUntil + ttlMs }',
  ],
  [
    'anybody renews',
    "if (!isHolder(row, key) || row.status !== 'leased')",
    "if (row?.status !== 'leased')",
  ],
  [
    'a renewal revives what has ended',
    "if (!isHolder(row, key) || row.status !== 'leased')",
    'if (!isHolder(row, key))',
  ],
  [
    'a late renewal is not told as lapsed',
    `const lapsed = now >= row.leaseUntil
  return { answer: { status: 'renewed'`,
    `const lapsed = false
  return { answer: { status: 'renewed'`,
  ],
  [
    'a job is completed by its id alone',
    "if (!isHolder(row, key) || row.status === 'released')",
    "if (row === undefined || row.status === 'released')",
  ],
  [
    'what was released is completed',
    "if (!isHolder(row, key) || row.status === 'released')",
    'if (!isHolder(row, key))',
  ],
  [
    'a job is released by its id alone',
    "if (!isHolder(row, key) || row.status === 'completed')",
    "if (row === undefined || row.status === 'completed')",
  ],
  [
    'what an operator ended is told as released by its holder',
    "return row.endedBy === 'holder' ? { answer: { status: 'released' } } : lost(row, key)",
    "return { answer: { status: 'released' } }",
  ],
  [
    'raise lowers',
    'if (row !== undefined && row.generation >= atLeast)',
    'if (row === null && atLeast === 0)',
  ],
  [
    'raise reopens a completed job',
    "row?.status === 'completed' ? 'completed' : 'released'",
    "'released'",
  ],
  [
    'a forced release looks like one of the holder',
    "{ ...ended(row, 'released', now), endedBy: 'operator' }",
    "ended(row, 'released', now)",
  ],
  [
    'reopening resets the generation',
    "{ ...row, status: 'released', endedBy: 'operator'",
    "{ ...row, generation: 1, status: 'released', endedBy: 'operator'",
  ],
  ['another generation is the holder', '    row.generation === key.generation &&\n', ''],
  ['another owner is the holder', '    row.owner === key.owner &&\n', ''],
  [
    'another lease is the holder',
    `row.owner === key.owner &&
    row.leaseId === key.leaseId`,
    'row.owner === key.owner',
  ],
])

const time = [
  ...mutantsOf('src/lease/deadline.ts', [
    ['the clock that says less counts', 'Math.max(now.monotonic', 'Math.min(now.monotonic'],
    [
      'the wall clock is not heard',
      'Math.max(now.monotonic - since.monotonic, now.wall - since.wall)',
      'now.monotonic - since.monotonic',
    ],
    [
      'the monotonic clock is not heard',
      'Math.max(now.monotonic - since.monotonic, now.wall - since.wall)',
      'now.wall - since.wall',
    ],
    [
      'a deadline moves back',
      'if (sent.monotonic > this.#sent.monotonic) this.#sent = sent',
      'this.#sent = sent',
    ],
  ]),
  ...mutantsOf('src/lease/heartbeat.ts', [
    ['a renewal counts from its answer', 'holding.confirm(sent)', 'holding.confirm(instant())'],
    [
      'a renewal is sent after the lease is over',
      '    if (holding.remainingMs() <= 0) return\n',
      '',
    ],
    [
      'the store says lost, and the worker goes on',
      "if (answer.status === 'lost') return holding.lose(answer.reason)",
      "if (answer.status === 'lost') return",
    ],
    [
      'an answer is heard after the end',
      `      if (stopped) return
      if (answer`,
      '      if (answer',
    ],
  ]),
  ...mutantsOf('src/lease/holding.ts', [
    [
      'a lease is lost twice',
      `    if (this.#over !== undefined) return
    this.#over =`,
      '    this.#over =',
    ],
    [
      'a late answer revives a lease',
      `    this.#checkDeadline()
    this.unanswered = false`,
      '    this.unanswered = false',
    ],
    [
      'assertHeld does not look at the clock',
      `assertHeld(): void {
    this.#checkDeadline()`,
      'assertHeld(): void {',
    ],
  ]),
]

const run = [
  ...mutantsOf('src/lease/run-with-lease.ts', [
    [
      'a deadline counts from the answer to the claim',
      'new Deadline(sent, plan.ttlMs - plan.marginMs)',
      'new Deadline(instant(), plan.ttlMs - plan.marginMs)',
    ],
    [
      'a deadline has no margin',
      'new Deadline(sent, plan.ttlMs - plan.marginMs)',
      'new Deadline(sent, plan.ttlMs)',
    ],
    [
      'each try of a claim is another lease',
      'store.claim(request)',
      'store.claim({ ...request, leaseId: newLeaseId() })',
    ],
    [
      'the handler starts when the lease is over',
      '    if (holding.remainingMs() <= 0 || signal.aborted) ',
      '    if (signal.aborted) ',
    ],
    [
      'a lease that a destination refused is completed',
      "  if (refusal === 'stale' || refusal === 'conflict') holding.lose('fenced', error)\n",
      '',
    ],
    ['a lost lease is settled', 'if (loss !== undefined) {', 'if (false) {'],
    ['destinations are not taken over', 'if (plan.destinations.length > 0) {', 'if (false) {'],
  ]),
  ...mutantsOf('src/lease/takeover.ts', [
    [
      'a new holder does not wait for what is in flight',
      "  if (older.inFlight > 0) return new WriteRefusedError('in_flight', token)\n",
      '',
    ],
    [
      'a new holder does not wait for what is overdue',
      "  if (older.overdue > 0) return new WriteRefusedError('outcome_unknown', token)\n",
      '',
    ],
  ]),
  ...mutantsOf('src/lease/lease-fetch.ts', [
    [
      'a try is sent after the lease is over',
      `    holding.assertHeld()
    const send`,
      '    const send',
    ],
    [
      'a success without a verdict is accepted',
      '    if (requireVerdict && !request.safe) assertVerdict(holding, request, response)\n',
      '',
    ],
    [
      'a stale answer does not end the lease',
      "error.code === 'stale' || error.code === 'conflict'",
      "error.code === 'conflict'",
    ],
    [
      'a conflict does not end the lease',
      "error.code === 'stale' || error.code === 'conflict'",
      "error.code === 'stale'",
    ],
    ['a write needs no operation id', 'if (!safe && operationId === undefined) {', 'if (false) {'],
    ['redirects take the token along', "redirect: 'manual', ", ''],
    [
      'a refusal is an answer like others',
      'if (!isProblemCode(word) || response.status !== problemStatus(word)) return undefined',
      'if (response !== undefined || !isProblemCode(word)) return undefined',
    ],
    ['a refusal without an end is waited for', "    late.addEventListener('abort', giveUp)\n", ''],
    ['a refusal that breaks off is taken for none', '.catch(() => signal.throwIfAborted())', ''],
    ['what is final is tried again', 'again: error.retryable || harmless', 'again: true'],
  ]),
]

export const leaseMutants: readonly Mutant[] = [...rules, ...time, ...run]
