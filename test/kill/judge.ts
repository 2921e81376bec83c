/** What the history of a run says of it: what was violated, and how much was done. */

import { readFileSync, writeFileSync } from 'node:fs'
import {
  type Answer,
  formatHistory,
  type HistoryEvent,
  type Invoke,
  parseHistory,
} from '../simulation/history.ts'
import { HistoryChecker } from '../simulation/history-checker.ts'
import type { Told } from './engines/bank.ts'
import type { Traced, WireAnswer } from './evidence.ts'

export interface Violation {
  readonly rule: string
  readonly message: string
}

export interface Judgement {
  readonly violations: readonly Violation[]
  readonly calls: number
  /** Operations that somebody was told are applied. */
  readonly acknowledged: number
  readonly effects: number
  readonly replayed: number
  readonly refused: number
  readonly unavailable: number
}

/**
 * Puts the effects at the end of the history file, so that it can be judged again by itself, and
 * judges it. Half lines of processes that were killed while they wrote go: what they would have
 * said is not known to anybody.
 */
export function judgeFile(path: string, effects: readonly Traced[]): Judgement {
  const whole = readFileSync(path, 'utf8').split('\n').filter(isWhole).join('\n')
  const text = `${whole}\n${formatHistory(effects)}`
  writeFileSync(path, text)
  return judge(parseHistory(text))
}

function judge(events: readonly HistoryEvent[]): Judgement {
  const checker = new HistoryChecker()
  for (const event of events) checker.accept(event)
  const violations: Violation[] = [...checker.finish(), ...mistold(events)]
  const answers = events.filter((event): event is WireAnswer => event.event === 'answer')
  for (const { call, httpStatus = 0 } of answers) {
    // 500 is what nobody has thought of.
    if (httpStatus === 500) violations.push({ rule: 'undocumented', message: `${call} got 500` })
  }
  const count = (wanted: (answer: Answer) => boolean) => answers.filter(wanted).length
  return {
    violations,
    calls: events.filter(({ event }) => event === 'invoke').length,
    acknowledged: acknowledgedIn(events).size,
    effects: events.filter(({ event }) => event === 'applied').length,
    replayed: count(({ outcome }) => outcome === 'replayed'),
    refused: count(({ outcome }) => outcome === 'refused'),
    unavailable: count(({ code }) => code === 'store_unavailable'),
  }
}

/** By operation, what its callers were told, each with the call. */
function acknowledgedIn(events: readonly HistoryEvent[]): Map<string, Map<string, unknown>> {
  const operations = new Map<string, string>()
  const told = new Map<string, Map<string, unknown>>()
  for (const event of events) {
    if (event.event === 'invoke') operations.set(event.call, operationOf(event))
    if (event.event !== 'answer' || !['applied', 'replayed'].includes(event.outcome)) continue
    const operation = operations.get(event.call) ?? ''
    const calls = told.get(operation) ?? new Map<string, unknown>()
    told.set(operation, calls.set(event.call, event.result))
  }
  return told
}

/** Whoever was told that his operation is applied was told so of the very effect that is there. */
function mistold(events: readonly HistoryEvent[]): Violation[] {
  const effects = events.filter((event): event is Traced => event.event === 'applied')
  const nonces = new Map(effects.map((effect) => [operationOf(effect), effect.nonce]))
  return [...acknowledgedIn(events)].flatMap(([operation, calls]) => {
    const nonce = nonces.get(operation)
    return [...calls]
      .filter(([, result]) => nonce !== undefined && (result as Told | null)?.nonce !== nonce)
      .map(([call]) => ({ rule: 'mistold', message: `${operation}: ${call} was told of another` }))
  })
}

function operationOf({ destination, jobId, operationId, call }: Invoke | Traced): string {
  return [destination, jobId, operationId ?? call].join(' ')
}

function isWhole(line: string): boolean {
  try {
    JSON.parse(line)
    return true
  } catch {
    return false
  }
}
