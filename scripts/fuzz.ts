/**
 * `npm run fuzz -- [--short] [--parsed N] [--sent N] [--seed N]`: nearly good input for every
 * reader, and for a real server. Exit 0 only if every answer was a documented one.
 */

import { parseArgs } from 'node:util'
import { generator } from '../test/fuzz/inputs.ts'
import { fuzzParsers } from '../test/fuzz/parsers.ts'
import { fuzzServer } from '../test/fuzz/server.ts'

const { values } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    parsed: { type: 'string' },
    sent: { type: 'string' },
    seed: { type: 'string' },
  },
})
const parsed = Number(values.parsed ?? (values.short ? 200_000 : 1_000_000))
const sent = Number(values.sent ?? (values.short ? 2_000 : 10_000))
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31))
const random = generator(seed)
const violations = [...fuzzParsers(random, parsed), ...(await fuzzServer(random, sent))]
for (const violation of violations) console.log(violation)
console.log(`fuzz: parsed=${parsed} sent=${sent} violations=${violations.length} seed=${seed}`)
process.exit(violations.length === 0 ? 0 : 1)
