/**
 * The history of a run: who asked for what, what was answered, what took place. One JSON object a
 * line; docs/history.md says how to write one from a system of your own. Nothing here, nor in the
 * checker, comes from the product: what judges must not share its mistakes.
 */

const DESTINATION_VERBS = ['write', 'effect', 'advance', 'seal', 'reopen', 'resolve'] as const
const LEASE_VERBS = [
  'claim',
  'renew',
  'complete',
  'release',
  'raise',
  'force_release',
  'reopen_lease',
] as const

type DestinationVerb = (typeof DESTINATION_VERBS)[number]
type LeaseVerb = (typeof LEASE_VERBS)[number]
export type Verb = DestinationVerb | LeaseVerb

export function isOfLeases(verb: Verb): boolean {
  return LEASE_VERBS.some((each) => each === verb)
}

/** What may be answered to a verb, besides `unknown`: no answer, or one that proves nothing. */
const OUTCOMES = {
  write: ['applied', 'replayed', 'refused', 'failed'],
  effect: ['applied', 'replayed', 'refused', 'failed'],
  advance: ['done', 'refused'],
  seal: ['done', 'refused'],
  reopen: ['done'],
  resolve: ['done', 'refused'],
  claim: ['claimed', 'held', 'completed'],
  renew: ['renewed', 'lost'],
  complete: ['completed', 'lost'],
  release: ['released', 'lost'],
  raise: ['done'],
  force_release: ['done'],
  reopen_lease: ['done'],
} as const satisfies Record<Verb, readonly string[]>

export type CallOutcome = (typeof OUTCOMES)[Verb][number] | 'unknown'

/** Where a job's fence is kept; both are `''` unless told. */
export interface Place {
  readonly destination?: string | undefined
  readonly scope?: string | undefined
  readonly jobId: string
}

export interface Invoke extends Place {
  readonly event: 'invoke'
  /** Names this call: no other has the same. */
  readonly call: string
  readonly verb: Verb
  /** Of the token, or of the lease. */
  readonly generation?: number | undefined
  readonly leaseId?: string | undefined
  readonly operationId?: string | undefined
  /** Of `raise`. */
  readonly atLeast?: number | undefined
}

export interface Answer {
  readonly event: 'answer'
  readonly call: string
  readonly outcome: CallOutcome
  /** Of a refusal. */
  readonly code?: string | undefined
  /** Of a write that was applied or replayed: any JSON. */
  readonly result?: unknown
  readonly appliedGeneration?: number | undefined
  readonly highestGeneration?: number | undefined
  /** What a refused caller was told of his operation. */
  readonly operationApplied?: boolean | undefined
  /** Of a claim: what was granted. */
  readonly generation?: number | undefined
  readonly leaseId?: string | undefined
}

/** An effect took place. The order of these lines is the order of the effects. */
export interface Applied extends Place {
  readonly event: 'applied'
  readonly generation: number
  readonly leaseId?: string | undefined
  /** At least one of the two: whose effect it is. */
  readonly operationId?: string | undefined
  readonly call?: string | undefined
}

/** Somebody looked at the fence. */
export interface FenceSeen extends Place {
  readonly event: 'fence'
  readonly generation: number
}

/** The lease service was restored from a backup: what it granted since is forgotten. */
interface Restored {
  readonly event: 'restored'
}

export type HistoryEvent = Invoke | Answer | Applied | FenceSeen | Restored

/** Where it is, as a key that no other place has. */
export function keyOf({ destination = '', scope = '', jobId }: Place): string {
  return JSON.stringify([destination, scope, jobId])
}

/** Where it is, for people. */
export function nameOf({ destination, scope, jobId }: Place): string {
  return [destination, scope, jobId].filter(Boolean).join('/')
}

// The refusals of a token that was let in: it has moved the fence, whatever became of the write.
const LET_IN: readonly unknown[] = ['mismatch', 'in_flight', 'outcome_unknown', 'sealed']

/** Whether the answer proves that the token was let in. */
export function admits({ outcome, code }: Answer): boolean {
  return outcome === 'refused' ? LET_IN.includes(code) : outcome !== 'unknown'
}

/** Whether the answer proves that the write took place. */
export function isSuccess({ outcome }: Answer): boolean {
  return outcome === 'applied' || outcome === 'replayed'
}

/** Whether the answer proves that nothing took place by this call. */
export function provesNothing(answer: Answer | undefined): boolean {
  if (answer?.outcome === 'refused') return answer.code !== 'outcome_unknown'
  return answer?.outcome === 'failed'
}

/** A history that cannot be judged, with the line (from 1) that is wrong. */
export class HistoryFormatError extends Error {
  readonly line: number

  constructor(line: number, problem: string) {
    super(`line ${line}: ${problem}`)
    this.line = line
  }
}

/** One event a line; blank lines are passed over, unknown members are kept out of the way. */
export function parseHistory(text: string): HistoryEvent[] {
  const calls = new Map<string, Verb | 'answered'>()
  return text.split('\n').flatMap((line, index) => {
    if (line.trim() === '') return []
    const problem = (what: string) => new HistoryFormatError(index + 1, what)
    const event = parseLine(line, problem)
    if (event.event === 'invoke') {
      if (calls.has(event.call)) throw problem(`call ${event.call} was invoked before`)
      calls.set(event.call, event.verb)
    }
    if (event.event === 'answer') {
      const verb = calls.get(event.call)
      if (verb === undefined) throw problem(`call ${event.call} was not invoked`)
      if (verb === 'answered') throw problem(`call ${event.call} was answered before`)
      const allowed: readonly string[] = [...OUTCOMES[verb], 'unknown']
      if (!allowed.includes(event.outcome)) {
        throw problem(`${event.outcome} is no answer to ${verb}: ${allowed.join(', ')} are`)
      }
      calls.set(event.call, 'answered')
    }
    return [event]
  })
}

export function formatHistory(events: readonly HistoryEvent[]): string {
  return events.map((event) => `${JSON.stringify(event)}\n`).join('')
}

type Problem = (what: string) => HistoryFormatError

const TEXT = ['destination', 'scope', 'jobId', 'call', 'operationId', 'leaseId', 'code']
const NUMBERS = ['generation', 'appliedGeneration', 'highestGeneration', 'atLeast']
const NEEDED: Readonly<Record<HistoryEvent['event'], readonly string[]>> = {
  invoke: ['call', 'verb', 'jobId'],
  answer: ['call', 'outcome'],
  applied: ['jobId', 'generation'],
  fence: ['jobId', 'generation'],
  restored: [],
}

function parseLine(line: string, problem: Problem): HistoryEvent {
  let value: Record<string, unknown>
  try {
    value = JSON.parse(line) as Record<string, unknown>
  } catch {
    throw problem('not JSON')
  }
  const kind = value?.event as HistoryEvent['event']
  if (!Object.hasOwn(NEEDED, kind ?? '')) {
    throw problem(`event must be one of ${Object.keys(NEEDED).join(', ')}`)
  }
  checkMembers(value, problem)
  const missing = NEEDED[kind].filter((name) => value[name] === undefined)
  if (missing.length > 0) throw problem(`${kind} needs ${missing.join(', ')}`)
  if (kind === 'invoke') checkInvoke(value, problem)
  if (kind === 'applied' && value.operationId === undefined && value.call === undefined) {
    throw problem('applied needs operationId or call')
  }
  return value as unknown as HistoryEvent
}

function checkMembers(value: Record<string, unknown>, problem: Problem): void {
  for (const name of TEXT) {
    const wrong = value[name] !== undefined && typeof value[name] !== 'string'
    if (wrong) throw problem(`${name} must be a string`)
  }
  for (const name of NUMBERS) {
    const wrong = value[name] !== undefined && !Number.isSafeInteger(value[name])
    if (wrong) throw problem(`${name} must be an integer`)
  }
  if (!['boolean', 'undefined'].includes(typeof value.operationApplied)) {
    throw problem('operationApplied must be true or false')
  }
}

const NEEDS_GENERATION: readonly string[] = [
  'write',
  'effect',
  'advance',
  'seal',
  'renew',
  'complete',
  'release',
]

function checkInvoke({ verb, generation, atLeast }: Record<string, unknown>, problem: Problem) {
  if (!Object.hasOwn(OUTCOMES, String(verb))) {
    throw problem(`verb must be one of ${Object.keys(OUTCOMES).join(', ')}`)
  }
  if (NEEDS_GENERATION.includes(String(verb)) && generation === undefined) {
    throw problem(`${verb} needs generation`)
  }
  if (verb === 'raise' && atLeast === undefined) throw problem('raise needs atLeast')
}
