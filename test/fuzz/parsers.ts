/** Everything that reads what came from outside: a checked value, or the documented error. */

import { RequestRefusedError } from '../../src/errors.ts'
import { checkIntent } from '../../src/guard/intent.ts'
import { checkId, checkToken, type FencingToken } from '../../src/token.ts'
import { readFenceCall } from '../../src/wire/fence-messages.ts'
import {
  formatFencingToken,
  formatIdempotencyKey,
  parseFencingToken,
  parseFencingVerdict,
  parseIdempotencyKey,
} from '../../src/wire/headers.ts'
import { readLeaseCall } from '../../src/wire/lease-messages.ts'
import { parseProblem } from '../../src/wire/problem.ts'
import {
  anyMessage,
  anyValue,
  keyText,
  mangle,
  pick,
  type Random,
  target,
  tokenText,
} from './inputs.ts'

/** One reader with an input for it; returns what is wrong, if anything is. */
type Trial = (random: Random) => string | undefined

/** Runs that many trials; each line says which reader failed on what. */
export function fuzzParsers(random: Random, runs: number): string[] {
  const trials = Object.entries(TRIALS)
  const violations: string[] = []
  for (let run = 0; run < runs && violations.length < 20; run += 1) {
    const [name, trial] = trials[run % trials.length] as (typeof trials)[number]
    const wrong = trial(random)
    if (wrong !== undefined) violations.push(`${name}: ${wrong}`)
  }
  return violations
}

const TRIALS: Readonly<Record<string, Trial>> = {
  'Fencing-Token': (random) => {
    const text = tokenText(random)
    return judged(text, ['token_malformed'], () => {
      const { jobId = 'j', generation, leaseId } = parseFencingToken(text)
      const token = checkToken({ jobId, generation, leaseId })
      return same(token, parseFencingToken(formatFencingToken(token)))
    })
  },
  'Idempotency-Key': (random) => {
    const text = keyText(random)
    return judged(text, ['operation_id_malformed'], () => {
      const key = checkId('operationId', parseIdempotencyKey(text))
      return same(key, parseIdempotencyKey(formatIdempotencyKey(key)))
    })
  },
  'Fencing-Verdict': (random) => {
    const text = mangle(random, pick(random, ['applied;highest=7', 'stale', 'passed;highest=x']))
    return judged(text, [], () => {
      const highest = parseFencingVerdict(text)?.highestGeneration
      return highest === undefined || Number.isSafeInteger(highest)
    })
  },
  token: (random) => {
    const value = anyMessage(random)
    return judged(value, 'misuse', () => {
      const token: FencingToken = checkToken(value)
      return same(token, parseFencingToken(formatFencingToken(token)))
    })
  },
  intent: (random) => {
    const operationId = random() < 0.5 ? 'op' : anyValue(random)
    const scope = random() < 0.5 ? '' : anyValue(random)
    const intent = { token: anyMessage(random), operationId, scope } as never
    return judged(intent, 'misuse', () => typeof checkIntent(intent).job.scope === 'string')
  },
  'lease message': (random) => {
    const method = pick(random, ['GET', 'POST', 'PUT', 'DELETE', ''])
    const request = { method, target: target(random), body: anyMessage(random) }
    return judged(request, ['request_malformed'], () => {
      const call = readLeaseCall(request)
      return call === undefined || typeof call.verb === 'string'
    })
  },
  'fence message': (random) => {
    const request = { method: pick(random, ['GET', 'POST', 'PUT']), target: target(random) }
    return judged(request, ['request_malformed'], () => {
      const call = readFenceCall(request)
      return call === undefined || call.jobId.length > 0
    })
  },
  problem: (random) => {
    const code = pick(random, ['stale', 'in_flight', 'nonsense'])
    const text = mangle(random, JSON.stringify({ code, retryable: true, generation: 7 }))
    return judged(text, [], () => {
      const problem = parseProblem('application/problem+json', text)
      return problem === undefined || typeof problem.status === 'number'
    })
  },
}

/** `codes` are the refusals that may come; `'misuse'` stands for TypeError and RangeError. */
function judged(
  input: unknown,
  codes: readonly string[] | 'misuse',
  read: () => boolean,
): string | undefined {
  try {
    return read() ? undefined : `${show(input)} does not come back as it was`
  } catch (error) {
    const expected =
      codes === 'misuse'
        ? error instanceof TypeError || error instanceof RangeError
        : error instanceof RequestRefusedError && codes.includes(error.code)
    return expected ? undefined : `${show(input)} gives ${error}`
  }
}

function same(value: unknown, again: unknown): boolean {
  return show(value) === show(again)
}

function show(value: unknown): string {
  const plain = (_: string, each: unknown) => (typeof each === 'bigint' ? `${each}n` : each)
  const sorted =
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value
  return JSON.stringify(sorted, plain)
}
