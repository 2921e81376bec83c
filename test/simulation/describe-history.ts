/** A history that people can read: one line an event, in columns. */

import { type HistoryEvent, type Invoke, nameOf } from './history.ts'

export function describeHistory(events: readonly HistoryEvent[]): string[] {
  const calls = new Map<string, Invoke>()
  return events.map((event) => {
    if (event.event === 'invoke') calls.set(event.call, event)
    return line(event, calls)
  })
}

function line(event: HistoryEvent, calls: ReadonlyMap<string, Invoke>): string {
  switch (event.event) {
    case 'invoke': {
      const { call, verb, operationId, generation, atLeast } = event
      const about = [verb, nameOf(event), operationId, generationOf(generation ?? atLeast)]
      return columns(call, '?', words(about))
    }
    case 'answer': {
      const { call, outcome, code, generation, highestGeneration, operationApplied } = event
      const told = [
        calls.get(call)?.verb,
        code ?? outcome,
        generationOf(generation),
        highestGeneration === undefined ? undefined : `(highest ${highestGeneration})`,
        operationApplied === undefined ? undefined : `(applied before: ${operationApplied})`,
      ]
      return columns(call, '=', words(told))
    }
    case 'applied': {
      const what = [nameOf(event), event.operationId, generationOf(event.generation)]
      return columns(event.call ?? '', '*', `${words(what)} TOOK PLACE`)
    }
    case 'fence':
      return columns('', '|', `fence of ${nameOf(event)} at ${event.generation}`)
    case 'restored':
      return columns('', '!', 'the lease service was put back to its backup')
  }
}

function columns(who: string, sign: string, what: string): string {
  return `  ${who.padEnd(12)} ${sign} ${what}`
}

function words(parts: readonly (string | undefined)[]): string {
  return parts.filter(Boolean).join(' ')
}

function generationOf(generation: number | undefined): string | undefined {
  return generation === undefined ? undefined : `g${generation}`
}
