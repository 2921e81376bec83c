/** Rules 11 to 17: the verdict, what it does to a job, and effects elsewhere. */

import { type Mutant, mutantsOf } from './mutant.ts'

const verdict = mutantsOf('src/guard/verdict.ts', [
  [
    'nothing is stale',
    "  if (token.generation < fence.generation) return { admitted: false, code: 'stale', fence }\n",
    '',
  ],
  [
    'the generation of the fence itself is stale',
    'token.generation < fence.generation',
    'token.generation <= fence.generation',
  ],
  [
    'whatever differs is stale',
    'token.generation < fence.generation',
    'token.generation !== fence.generation',
  ],
  [
    'a second holder takes the generation over',
    'token.generation > fence.generation',
    'token.generation >= fence.generation',
  ],
  [
    'a newer generation leaves the old holder',
    'fence: { ...fence, generation: token.generation, holder },',
    'fence: { ...fence, generation: token.generation },',
  ],
  [
    'a newer generation lifts the seal',
    'fence: { ...fence, generation: token.generation, holder },',
    'fence: { ...fence, generation: token.generation, holder, sealed: false },',
  ],
  [
    'an unbound fence stays unbound',
    'fence: { ...fence, holder }, moved: true',
    'fence, moved: false',
  ],
  ['nothing is a conflict', 'if (!sameHolder(fence.holder, holder))', 'if (false)'],
  ['two leases are one holder', "=== 'lease' && a.leaseId === b.leaseId", "=== 'lease'"],
  [
    'no lease is the same as any',
    "return b.kind === 'lease' && a",
    "return b.kind !== 'lease' || a",
  ],
  ['any lease is the same as none', 'return a.kind === b.kind', 'return true'],
  [
    'a token that is not admitted writes',
    '  if (!admission.admitted) return refuse(admission.code)\n',
    '',
  ],
  [
    'a sealed job replays nothing',
    '  if (!admission.admitted) return refuse(admission.code)\n',
    `  if (!admission.admitted) return refuse(admission.code)
  if (admission.fence.sealed) return refuse('sealed')\n`,
  ],
  [
    'one operation id for two requests',
    "    if (known.fingerprint !== write.fingerprint) return refuse('mismatch')\n",
    '',
  ],
  [
    'an applied operation is replayed to another request',
    'if (known.fingerprint !== write.fingerprint)',
    "if (known.status !== 'applied' && known.fingerprint !== write.fingerprint)",
  ],
  ['an applied operation is applied again', "if (known.status === 'applied') {", 'if (false) {'],
  [
    'an operation in flight is never overdue',
    "if (known.status === 'in_flight' && !known.overdue)",
    "if (known.status === 'in_flight')",
  ],
  [
    'an operation in flight is unknown',
    "if (known.status === 'in_flight' && !known.overdue)",
    'if (false)',
  ],
  [
    'an unknown operation runs again',
    "    if (known.attemptId !== write.takes) return refuse('outcome_unknown')\n",
    '',
  ],
  [
    'an attempt that nobody asked about is taken over',
    'if (known.attemptId !== write.takes)',
    'if (write.takes === undefined)',
  ],
  ['a sealed job is written to', "  if (admission.fence.sealed) return refuse('sealed')\n", ''],
  [
    'an older overdue operation holds nobody back',
    "if (write.afterOverdue !== 'proceed' && isOlder(overdue, write))",
    'if (false)',
  ],
  [
    'nobody may proceed after an overdue operation',
    "write.afterOverdue !== 'proceed' && isOlder(overdue, write)",
    'isOlder(overdue, write)',
  ],
  ['an older operation in flight holds nobody back', 'if (isOlder(inFlight, write))', 'if (false)'],
  [
    'who proceeds after an overdue one does not wait for one in flight',
    'if (isOlder(inFlight, write))',
    "if (write.afterOverdue !== 'proceed' && isOlder(inFlight, write))",
  ],
  [
    'operations of the same generation hold each other back',
    'pending.generation < write.token.generation',
    'pending.generation <= write.token.generation',
  ],
  [
    'a stale caller is told that another request of his id was applied',
    'return known.fingerprint === write.fingerprint',
    'return true',
  ],
  [
    'a stale caller is told that what is unsettled did not take place',
    "if (known.status !== 'applied') return undefined",
    "if (known.status !== 'applied') return false",
  ],
])

const settle = mutantsOf('src/guard/settle.ts', [
  [
    'any attempt settles the operation',
    '  if (known.attemptId !== attemptId) return { settled: false }\n',
    '',
  ],
  [
    'an overdue attempt may not say what it did',
    'if (known.attemptId !== attemptId)',
    "if (known.attemptId !== attemptId || known.status === 'unknown' || known.overdue)",
  ],
  [
    'a late settling is not told as late',
    "const late = known.status === 'unknown' || known.overdue",
    'const late = false',
  ],
  [
    'an operation in flight is resolved from outside',
    "if (known.status === 'in_flight' && !known.overdue) {",
    'if (false) {',
  ],
  [
    'resolving undoes what was applied',
    "if (known.status === 'applied') return { status: 'already_applied'",
    "if (false) return { status: 'already_applied'",
  ],
  [
    'an attempt without proof leaves no record',
    "return { kind: 'put', operation: { status: 'unknown', generation, fingerprint, attemptId } }",
    "return { kind: 'delete' }",
  ],
  ['what was not applied stays', "return { kind: 'delete' }", "return { kind: 'none' }"],
])

const units = mutantsOf('src/guard/units.ts', [
  [
    'the fence does not move',
    'fence: admission.admitted && admission.moved ? admission.fence : undefined,',
    'fence: undefined,',
  ],
  [
    'the fence moves only with an effect',
    'fence: admission.admitted && admission.moved ?',
    "fence: verdict.status === 'apply' ?",
  ],
  [
    'the effect runs whatever the verdict',
    "action: verdict.status === 'apply' ? action : unruled(order, action),",
    'action,',
  ],
  [
    'a refused effect runs, unrecorded',
    "order.mode === 'report' && action.kind === 'apply'",
    "action.kind === 'apply'",
  ],
  ['a refused effect is recorded in report mode', '{ ...action, unrecorded: true }', 'action'],
  [
    'every caller reruns an unknown operation',
    'attempt.rerun ? attemptOf(view) : order.takes',
    'attemptOf(view)',
  ],
  [
    'nobody reruns an unknown operation',
    'attempt.rerun ? attemptOf(view) : order.takes',
    'order.takes',
  ],
  [
    'a reservation may be part of a transaction that is rolled back',
    `insideTransaction: 'refuse',
    step(view) {
      const takes`,
    `insideTransaction: 'wait',
    step(view) {
      const takes`,
  ],
  [
    'an advance may be part of a transaction that is rolled back',
    `insideTransaction: 'refuse',
    step(view) {
      const admission`,
    `insideTransaction: 'wait',
    step(view) {
      const admission`,
  ],
  ['a stale token advances', 'if (!admission.admitted) {', 'if (false) {'],
  [
    'advance is forgotten',
    `previous(view.fence, fence) } as const
      return { answer, fence,`,
    `previous(view.fence, fence) } as const
      return { answer,`,
  ],
  [
    'seal does not seal',
    'seal ? { ...admission.fence, sealed: true } : admission.fence',
    'admission.fence',
  ],
  [
    'reopening stays at the generation',
    'generation: current.generation + 1, holder',
    'generation: current.generation, holder',
  ],
  [
    'reopening keeps the holder',
    "holder: { kind: 'unbound' }, sealed: false }",
    'holder: current.holder, sealed: false }',
  ],
  [
    'reopening keeps the seal',
    "{ kind: 'unbound' }, sealed: false }",
    "{ kind: 'unbound' }, sealed: current.sealed }",
  ],
  [
    'reopening twice outruns the lease store',
    "  if (!sealed && holder.kind === 'unbound') return 'open'\n",
    '',
  ],
  [
    'reopening goes past the last generation',
    "generation < MAX_GENERATION ? 'reopened' : 'exhausted'",
    "generation > 0 ? 'reopened' : 'exhausted'",
  ],
])

const effects = [
  ...mutantsOf('src/guard/effect.ts', [
    [
      'what a resolver found out is not judged again',
      'const second = await reserve(plan, attempt, taken)',
      `const { highestGeneration } = first.verdict
  const second = { ...first, verdict: { status: 'apply' as const, highestGeneration } }`,
    ],
    ['effects fail open', 'if (!plan.failOpen || !(error', 'if (!(error'],
    [
      'unnamed effects share an id',
      'operationId: plan.order.operationId ??',
      "operationId: plan.order.operationId ?? 'unnamed' ??",
    ],
  ]),
  ...mutantsOf('src/guard/attempt.ts', [
    [
      'any error proves that nothing happened',
      "error instanceof NotAppliedError || plan.errorsMean === 'not_applied'",
      'true',
    ],
    ['no error proves anything', 'error instanceof NotAppliedError || plan', 'plan'],
    [
      'an attempt that was superseded says applied',
      "  if (settled.status === 'superseded') throw settled.error\n",
      '',
    ],
    [
      'what will be rerun is told as done',
      "if (settled.status === 'failed' && plan.onUnknown === 'rerun') {",
      'if (false) {',
    ],
    [
      'an unnamed effect leaves a record',
      "  if (!attempt.named) return { ending: { status: 'not_applied' } }\n",
      '',
    ],
    [
      'the signal of an effect does not abort at its deadline',
      ': setTimeout(late, deadlineMs)',
      ': undefined',
    ],
  ]),
]

const guard = [
  ...mutantsOf('src/guard/outcome.ts', [
    ['an effect that threw is answered as applied', '    throw done.effect.error\n', ''],
    [
      'a write without an id may be repeated when its fate is not known',
      'if (order.operationId !== undefined) return error',
      'if (order !== undefined) return error',
    ],
  ]),
  ...mutantsOf('src/guard/intent.ts', [
    ['one scope for all tenants', 'scope: checkScope(scope), jobId', "scope: '', jobId"],
    [
      'writes have no fingerprint',
      'fingerprint: fingerprint === undefined ?',
      'fingerprint: fingerprint !== undefined ?',
    ],
  ]),
  ...mutantsOf('src/guard/write-guard.ts', [
    ["the text 'false' fails open", "if (typeof failOpen !== 'boolean')", 'if (false)'],
    ['advance seals', "token, verb === 'seal')", 'token, true)'],
  ]),
  ...mutantsOf('src/token.ts', [
    ['generation 0', 'if (value < 1 ||', 'if (value < 0 ||'],
    ['generations beyond 10^15', '|| value > MAX_GENERATION)', '|| value > 2 ** 53)'],
  ]),
]

export const guardMutants: readonly Mutant[] = [
  ...verdict,
  ...settle,
  ...units,
  ...effects,
  ...guard,
]
