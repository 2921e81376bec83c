/** Rules 12 to 16: what a verdict does to a job, and effects elsewhere. */

import { type Mutant, mutantsOf } from './mutant.ts'

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
    'const put = admission.moved || seal ? fence : undefined',
    'const put = seal ? fence : undefined',
  ],
  [
    'a seal of the present holder is forgotten',
    'admission.moved || seal ? fence',
    'admission.moved ? fence',
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
      'a proof speaks for the attempt before, which may have taken place',
      'ruling.earlier ??',
      "(ruling.earlier === 'overdue' ? ruling.earlier : undefined) ??",
    ],
    [
      'a proof speaks for the attempt before, which may land all the same',
      'ruling.earlier ??',
      "(ruling.earlier === 'unknown' ? ruling.earlier : undefined) ??",
    ],
    [
      'an attempt that was superseded says applied',
      "  if (settled.status === 'superseded') return settled.error\n",
      '',
    ],
    [
      'what will be rerun is told as done',
      "if (settled.status === 'failed' && plan.onUnknown === 'rerun') {",
      'if (false) {',
    ],
    [
      'a proof is told as one of the attempt before',
      "const nothing = status === 'not_applied' && ",
      "const nothing = provenBy(plan, error) === 'not_applied' && ",
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
  ...mutantsOf('src/guard/fenced-storage.ts', [
    ['what JSON cannot say is compared without it', 'toJson(each, ', 'JSON.stringify(each, '],
    ['one id on two methods is a replay', 'JSON.stringify(name)', '1'],
    ['an instance of a class has no methods', '!found.has(name)) found', 'found.has(name)) found'],
    ['a method is that of the base class', '!found.has(name)) found', 'true) found'],
    ['a method loses its resource', 'Reflect.apply(method, methods,', 'Reflect.apply(method, {},'],
  ]),
  ...mutantsOf('src/guard/guard-options.ts', [
    ["the text 'false' fails open", "if (typeof failOpen !== 'boolean')", 'if (false)'],
    [
      'whether open jobs are pruned is left to the engine',
      "if (typeof sealedOnly !== 'boolean')",
      'if (false)',
    ],
  ]),
  ...mutantsOf('src/guard/bound-fence.ts', [
    [
      'an override without an id takes the id of the write away',
      'operationId: operationId === undefined ? this.intent.operationId : operationId',
      'operationId',
    ],
    [
      'an override without a fingerprint takes that of the write away',
      'fingerprint: fingerprint === undefined ? this.intent.fingerprint : fingerprint',
      'fingerprint',
    ],
    [
      'an override that is misspelled is none',
      'if (unknown !== undefined) throw new TypeError(`an override has',
      'if (others === undefined) throw new TypeError(`an override has',
    ],
  ]),
  ...mutantsOf('src/guard/write-guard.ts', [
    ['advance seals', "token, verb === 'seal')", 'token, true)'],
  ]),
  ...mutantsOf('src/token.ts', [
    ['generation 0', 'if (value < 1 ||', 'if (value < 0 ||'],
    ['generations beyond 10^15', '|| value > MAX_GENERATION)', '|| value > 2 ** 53)'],
  ]),
]

export const guardMutants: readonly Mutant[] = [...units, ...effects, ...guard]
