/** What a report of Stryker says (the JSON of its `mutation-testing-report-schema`). */

import type { Survivor } from './survivors.ts'

interface Place {
  readonly line: number
  readonly column: number
}

interface Generated {
  readonly mutatorName: string
  readonly replacement: string
  readonly status: string
  readonly static?: boolean | undefined
  readonly location: { readonly start: Place; readonly end: Place }
}

export interface Report {
  readonly files: Readonly<Record<string, { source: string; mutants: readonly Generated[] }>>
}

/** Ignored are those of code that runs once, when a module is loaded. */
export function tally(report: Report) {
  const all = Object.values(report.files).flatMap(({ mutants }) => mutants)
  const of = (status: string) => all.filter((each) => each.status === status).length
  return {
    mutants: all.length,
    killed: of('Killed') + of('RuntimeError'),
    timeout: of('Timeout'),
    survived: of('Survived'),
    uncovered: of('NoCoverage'),
    static: of('Ignored'),
  }
}

/** The mutants that no test noticed, or that none reached. */
export function survivorsOf(report: Report): Survivor[] {
  return Object.entries(report.files).flatMap(([file, { source, mutants }]) =>
    mutants
      .filter(({ status }) => status === 'Survived' || status === 'NoCoverage')
      .map(({ location, replacement }) => ({
        file,
        line: location.start.line,
        original: textAt(source, location),
        replacement,
      })),
  )
}

function textAt(source: string, { start, end }: Generated['location']): string {
  const lines = source.split('\n').slice(start.line - 1, end.line)
  const last = lines.length - 1
  return lines
    .map((line, index) => (index === last ? line.slice(0, end.column - 1) : line))
    .map((line, index) => (index === 0 ? line.slice(start.column - 1) : line))
    .join('\n')
}
