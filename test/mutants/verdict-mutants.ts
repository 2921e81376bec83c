/** Rule 11 and I6: what is decided of a write, and of the end of an attempt. */

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

export const verdictMutants: readonly Mutant[] = [...verdict, ...settle]
