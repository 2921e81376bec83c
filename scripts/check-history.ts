/** Judges a history file (docs/history.md): `npm run check:history -- history.jsonl` */

import { readFileSync } from 'node:fs'
import { HistoryFormatError, parseHistory } from '../test/simulation/history.ts'
import { checkHistory } from '../test/simulation/history-checker.ts'

const [path, ...rest] = process.argv.slice(2)
if (path === undefined || rest.length > 0) {
  console.error('usage: npm run check:history -- <history.jsonl>')
  process.exit(2)
}

try {
  const { violations, counts } = checkHistory(parseHistory(read(path)))
  for (const { rule, message } of violations) console.log(`${rule}: ${message}`)
  const { events, operations, effects, claims } = counts
  const judged = `events=${events} operations=${operations} effects=${effects} claims=${claims}`
  console.log(`check-history: ${judged} violations=${violations.length}`)
  process.exitCode = violations.length === 0 ? 0 : 1
} catch (error) {
  if (!(error instanceof HistoryFormatError)) throw error
  console.error(`${path}: ${error.message}`)
  process.exitCode = 2
}

/** What cannot be read was not judged: 1 would say that a rule was broken. */
function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    console.error(`${file}: cannot be read: ${error instanceof Error ? error.message : error}`)
    process.exit(2)
  }
}
