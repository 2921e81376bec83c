import { checkDuration, checkOptionNames, type OptionNames } from '../options.ts'
import { sequentialChecks } from './probe-checks.ts'
import type { ProbeRequest } from './probe-http.ts'
import { raceChecks } from './probe-race-checks.ts'
import { ProbeSession, Violation } from './probe-session.ts'

/** The write that the probe asks for. */
export interface ProbeOperation {
  readonly jobId: string
  readonly operationId: string
  /** Two requests under one operation id differ in it: make their bodies (or targets) differ. */
  readonly variant: 1 | 2
}

/** A destination, and how to write to it. */
export interface ProbeOptions {
  readonly baseUrl: string | URL
  /**
   * The request that makes one write of this job. The probe adds `Fencing-Token` and
   * `Idempotency-Key`. The same operation and variant must give the same request.
   */
  readonly write: (operation: ProbeOperation) => ProbeRequest | Promise<ProbeRequest>
  /** Makes a job that nobody has written to, and gives its id; the proposed name unless told. */
  readonly newJob?: ((proposed: string) => string | Promise<string>) | undefined
  /**
   * The operation ids of the job's effects, in the order in which they took place, read from where
   * they went to. With it, order and duplicates are judged by what happened; without it, by
   * what was answered.
   */
  readonly effects?: ((jobId: string) => Promise<readonly string[]>) | undefined
  /** Stops the destination and starts it again; gives its new base URL, if it has another. */
  readonly restart?: (() => Promise<string | URL | undefined>) | undefined
  /** How long one answer is waited for, in milliseconds; 10 000 unless told. */
  readonly timeoutMs?: number | undefined
}

const NAMES = {
  baseUrl: true,
  write: true,
  newJob: true,
  effects: true,
  restart: true,
  timeoutMs: true,
} satisfies OptionNames<ProbeOptions>

/** What the probe looks at. */
export type ProbeProperty =
  | 'accepts_first'
  | 'accepts_same_generation'
  | 'accepts_newer_generation'
  | 'compares_as_numbers'
  | 'refuses_stale'
  | 'refuses_stale_after_takeover'
  | 'advances_when_refusing'
  | 'refuses_second_holder'
  | 'replays_duplicates'
  | 'refuses_mismatch'
  | 'keeps_jobs_apart'
  | 'refuses_malformed'
  | 'applies_concurrent_duplicates_once'
  | 'checks_when_it_writes'
  | 'orders_concurrent_generations'
  | 'remembers_after_restart'
  | 'proves_that_it_fences'
  | 'spells_refusals'

/** What the probe found of one property. */
export interface ProbeFinding {
  readonly property: ProbeProperty
  /** `undefined` where it could not be tried; `detail` says what is needed. */
  readonly holds: boolean | undefined
  /** What was seen. */
  readonly detail: string
}

/** One look at a destination. @throws Violation */
export interface ProbeCheck {
  readonly property: ProbeProperty
  run(session: ProbeSession): Promise<Omit<ProbeFinding, 'property'>>
}

/**
 * Looks from outside at a destination in any language: sends first, stale, duplicate, mismatching,
 * malformed, conflicting, concurrent, slow and late writes of jobs of its own, and tells what holds
 * of docs/protocol.md. One finding each, never thrown; that a property holds means that no
 * violation was seen. It writes to the destination: give it one that may be written to.
 * @throws TypeError or RangeError naming the option
 */
export async function probeDestination(options: ProbeOptions): Promise<ProbeFinding[]> {
  checkOptionNames(options, NAMES)
  const timeoutMs = checkDuration('timeoutMs', options.timeoutMs ?? 10_000)
  if (!URL.canParse(String(options.baseUrl))) throw new TypeError('baseUrl must be a URL')
  if (typeof options.write !== 'function') throw new TypeError('write must be a function')
  const session = new ProbeSession(options, timeoutMs)
  const findings: ProbeFinding[] = []
  // One after the other: a check that fails must not be another one's fault.
  for (const check of [...sequentialChecks, ...raceChecks, ...summaries]) {
    findings.push({ property: check.property, ...(await tried(check, session)) })
  }
  return findings
}

/** What all answers together show. */
const summaries: readonly ProbeCheck[] = [
  {
    property: 'proves_that_it_fences',
    run: async ({ unproved }) =>
      none(unproved, 'every answer had a Fencing-Verdict', ' without one'),
  },
  {
    property: 'spells_refusals',
    run: async ({ misspelled }) => none(misspelled, 'refusals have status and code', ''),
  },
]

function none(found: ReadonlySet<string>, otherwise: string, problem: string) {
  const [first] = found
  if (first === undefined) return { holds: true, detail: otherwise }
  return { holds: false, detail: `${first}${problem} (${found.size} such)` }
}

async function tried(
  check: ProbeCheck,
  session: ProbeSession,
): Promise<Omit<ProbeFinding, 'property'>> {
  try {
    return await check.run(session)
  } catch (error) {
    // Whatever a hook or the network says is a finding as well: nothing was shown to hold.
    const said = error instanceof Error ? error.message : String(error)
    return { holds: false, detail: error instanceof Violation ? said : `no answer: ${said}` }
  } finally {
    for (const finish of session.finishers) finish()
    session.finishers.clear()
  }
}
