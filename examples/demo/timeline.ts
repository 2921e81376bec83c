/** How the demo is printed: aligned, plain text; colour for people at a terminal only. */

import { styleText } from 'node:util'

export interface Line {
  readonly when?: string
  readonly who?: string
  readonly generation?: string
  readonly what: string
  /** What the world with the guard says, and the one without. */
  readonly guarded: string
  readonly unguarded: string
}

const coloured = process.stdout.isTTY && process.env.NO_COLOR === undefined

export function paint(style: 'bold' | 'green' | 'red', text: string): string {
  return coloured ? styleText(style, text) : text
}

export function printLine(line: Line): void {
  const { when = '', who = '', generation = '', what, guarded, unguarded } = line
  const left = `${when.padEnd(7)}${who.padEnd(4)}${generation.padEnd(5)}${what.padEnd(38)}`
  const [right, wrong] = [guarded.padEnd(27), unguarded]
  const text = part(line) ? paint('green', right) + paint('red', wrong) : right + wrong
  console.log((left + text).trimEnd())
}

/** Whether the worlds say different things here, and not one thing in more or fewer words. */
function part({ guarded, unguarded }: Line): boolean {
  return unguarded !== '-' && guarded.replace(/ (applied|replayed|passed)/, '') !== unguarded
}
