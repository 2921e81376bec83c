import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type FencingToken, MAX_GENERATION } from 'writefence'
import { requestCodes, verdictCodes } from '../../src/errors.ts'
import { idProblem } from '../../src/token.ts'
import {
  formatFencingToken,
  formatFencingVerdict,
  formatIdempotencyKey,
  onlyHeader,
  parseFencingToken,
  parseFencingVerdict,
  parseIdempotencyKey,
  type VerdictWord,
} from '../../src/wire/headers.ts'

const ids = fc
  .oneof(fc.string({ unit: 'grapheme-ascii' }), fc.string({ unit: 'binary' }))
  .filter((text) => idProblem(text) === undefined)
const generations = fc.oneof(
  fc.integer({ min: 1, max: 20 }),
  fc.integer({ min: 2 ** 53 - 3, max: 2 ** 53 - 1 }).map((n) => n % MAX_GENERATION || 1),
  fc.integer({ min: MAX_GENERATION - 3, max: MAX_GENERATION }),
)
const tokens: fc.Arbitrary<FencingToken> = fc.record({
  jobId: ids,
  generation: generations,
  leaseId: fc.option(ids, { nil: undefined }),
})
const oddIds = ['订单-1', '🚚', 'a b', ' trailing ', 'a"b\\c', '%22', '\uFEFFbom', 'é', '__proto__']
const tokenRefused = (text: string) => () => parseFencingToken(text)
const malformedToken = expect.objectContaining({ code: 'token_malformed' })
const malformedKey = expect.objectContaining({ code: 'operation_id_malformed' })

describe('Fencing-Token', () => {
  it('R46: every valid token comes back from its header as it was', () => {
    fc.assert(
      fc.property(tokens, (token) => {
        const text = formatFencingToken(token)
        expect(text).toMatch(/^[\x20-\x7e]+$/)
        expect(parseFencingToken(text)).toEqual(token)
      }),
    )
  })

  it.each(oddIds)('R46: the job %j comes back as it was', (jobId) => {
    const token = { jobId, generation: 7, leaseId: jobId }
    expect(parseFencingToken(formatFencingToken(token))).toEqual(token)
  })

  it('is spelled as the protocol has it', () => {
    const ascii = { jobId: 'import-42', generation: 7, leaseId: '2f1c' }
    expect(formatFencingToken(ascii)).toBe('7;job="import-42";lease="2f1c"')
    expect(formatFencingToken({ jobId: 'é"', generation: 7 })).toBe('7;job=%"%c3%a9%22"')
  })

  it('R58: the largest generation is exact, and the next one is malformed', () => {
    expect(parseFencingToken(`${MAX_GENERATION}`).generation).toBe(MAX_GENERATION)
    expect(tokenRefused('1000000000000000')).toThrow(malformedToken)
    expect(tokenRefused('9007199254740993')).toThrow(malformedToken)
  })

  it.each(
    '5abc 1e3 0x10 007 +5 5.0 -1 "5" NaN Infinity ٥ 0 -0 5. ?1 :NQ==: @5 a 5,6 5; (5)'
      .split(' ')
      .concat('', ' 5 ', '5\t', '5, 6'),
  )('R61: %j is malformed', (text) => {
    expect(tokenRefused(text)).toThrow(malformedToken)
  })

  it.each([
    ['R49: a UUID', '2f1c7c52-8f0a-4a37-9f39-0c3c7f6f1d11'],
    ['two lines joined by a proxy', '3, 9'],
    ['a space before a parameter', '5; job="a"'],
    ['a repeated parameter', '5;job="a";job="b"'],
    ['a repeated parameter of one value', '5;job="a";job="a"'],
    ['a job that is a Token', '5;job=a'],
    ['a job that is an Integer', '5;job=1'],
    ['a job that is true', '5;job'],
    ['an ASCII job as a Display String', '5;job=%"a"'],
    ['an empty job', '5;job=""'],
    ['upper-case percent-encoding', '5;job=%"%C3%A9"'],
    ['broken UTF-8', '5;job=%"%c3"'],
    ['raw latin-1', '5;job=%"é"'],
    ['R67: a NUL in the job', '5;job=%"a%00b"'],
    ['R67: a job of 10 KB', `5;job="${'a'.repeat(10_240)}"`],
    ['a lease that is an Integer', '5;job="a";lease=1'],
    ['an unknown parameter that is not canonical', '5;job="a";x=1.0'],
    ['a key in upper case', '5;Job="a"'],
  ])('%s is malformed', (_, text) => {
    expect(tokenRefused(text)).toThrow(malformedToken)
  })

  it('ignores unknown parameters, whatever their order', () => {
    const sent = '5;aud="x";lease="l";sig=:YWJj:;job="a";n=1.5;t;d=@7'
    expect(parseFencingToken(sent)).toEqual({ generation: 5, jobId: 'a', leaseId: 'l' })
  })

  it('leaves out the job where the route gives it', () => {
    expect(parseFencingToken('5')).toEqual({ generation: 5 })
  })

  it('reads no text that it would not write, whatever the text', () => {
    const pieces = fc.constantFrom(
      ...'5|0|-|.|;|job|lease|=|"|%"|a|%c3%a9|\\|%ef%bb%bf| |,'.split('|'),
    )
    const texts = fc.array(pieces, { maxLength: 12 }).map((parts) => `5${parts.join('')}`)
    fc.assert(
      fc.property(texts, (text) => {
        let read: ReturnType<typeof parseFencingToken>
        try {
          read = parseFencingToken(text)
        } catch (error) {
          expect(error).toEqual(malformedToken)
          return
        }
        if (read.jobId === undefined) return
        expect(text).toContain(formatFencingToken({ jobId: read.jobId, generation: 5 }).slice(1))
      }),
      { numRuns: 500 },
    )
  })

  it.each([
    [{ jobId: '', generation: 1 }, 'jobId'],
    [{ jobId: 'a', generation: 0 }, 'generation'],
    [{ jobId: 'a', generation: 1, leaseId: 'a\nb' }, 'leaseId'],
  ])('%j is not sent', (token, name) => {
    expect(() => formatFencingToken(token)).toThrow(new RegExp(`^${name} `))
  })
})

describe('Idempotency-Key', () => {
  it('every valid operation id comes back from its header as it was', () => {
    fc.assert(
      fc.property(ids, (id) => {
        expect(parseIdempotencyKey(formatIdempotencyKey(id))).toBe(id)
      }),
    )
  })

  it('is quoted, and bare it is the same key', () => {
    expect(formatIdempotencyKey('charge-1')).toBe('"charge-1"')
    expect(parseIdempotencyKey('"charge-1"')).toBe('charge-1')
    expect(parseIdempotencyKey('charge-1')).toBe('charge-1')
  })

  it.each(['007', '5', '5.0', 'a:b/c=', '%22', 'a%2Fb', "!#$&'*+-.^_`|~@"])(
    '%j stands for itself',
    (key) => {
      expect(parseIdempotencyKey(key)).toBe(key)
      expect(parseIdempotencyKey(`"${key}"`)).toBe(key)
    },
  )

  it.each([
    ['nothing', ''],
    ['an empty String', '""'],
    ['two lines joined by a proxy', 'a, b'],
    ['a space', 'a b'],
    ['a list of Strings', '"a", "b"'],
    ['an open quote', '"a'],
    ['a quote inside', 'a"b'],
    ['bare with a parameter', 'a;b=1'],
    ['a number with a parameter', '5;b=1'],
    ['an ASCII Display String', '%"a"'],
    ['bare beyond ASCII', 'é'],
    ['R67: a NUL', '%"a%00b"'],
    ['R67: 10 KB', 'k'.repeat(10_240)],
    ['R67: 10 KB, quoted', `"${'k'.repeat(10_240)}"`],
    ['256 characters', 'k'.repeat(256)],
  ])('%s is malformed', (_, text) => {
    expect(() => parseIdempotencyKey(text)).toThrow(malformedKey)
  })
})

describe('Fencing-Verdict', () => {
  const words: VerdictWord[] = [
    'applied',
    'replayed',
    'passed',
    'store_unavailable',
    ...verdictCodes,
    ...requestCodes,
  ]

  it.each(words)('%s comes back as it was', (word) => {
    for (const highestGeneration of [undefined, 7]) {
      const verdict = { word, highestGeneration }
      expect(parseFencingVerdict(formatFencingVerdict(verdict))).toEqual(verdict)
    }
  })

  it('is spelled as the protocol has it', () => {
    const verdict = { word: 'applied', highestGeneration: 7 } as const
    expect(formatFencingVerdict(verdict)).toBe('applied;highest=7')
  })

  it.each([null, undefined, '', '7', '"applied"', 'applied;highest', 'a b', 'applied, applied'])(
    '%j proves nothing more than it says',
    (text) => {
      const verdict = parseFencingVerdict(text)
      expect(verdict?.highestGeneration).toBeUndefined()
      expect(verdict?.word).toBe(text === 'applied;highest' ? 'applied' : undefined)
    },
  )
})

describe('a header among raw headers', () => {
  const raw = ['Host', 'Fencing-Token', 'fencing-TOKEN', '3', 'X', '9']

  it('is found by name alone, whatever its case, and not by the values of others', () => {
    expect(onlyHeader(raw, 'Fencing-Token', 'token_malformed')).toBe('3')
    expect(onlyHeader(['X', 'y'], 'Fencing-Token', 'token_malformed')).toBeUndefined()
  })

  it('R62: two lines of it are refused', () => {
    const twice = [...raw, 'Fencing-Token', '3']
    expect(() => onlyHeader(twice, 'Fencing-Token', 'token_malformed')).toThrow(malformedToken)
  })
})
