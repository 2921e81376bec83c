/** Inputs that are nearly good, and some that are nothing at all; seeded. */

export type Random = () => number

/** Numbers from 0 to below 1 by mulberry32: one seed, one run. */
export function generator(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export function pick<T>(random: Random, from: readonly T[]): T {
  return from[Math.floor(random() * from.length)] as T
}

const TOKENS = [
  '7;job="j";lease="a"',
  '1',
  '999999999999999;job="import-42"',
  '7;job=%"%e8%ae%a2%e5%8d%95";lease="x"',
  '7;lease="a";job="j"',
  '7;job="a\\"b\\\\c"',
  '7;job="j";other=1;more',
]
const KEYS = ['"charge-1"', 'charge-1', '%"%f0%9f%92%b8"', '"a b"', '"\\"quoted\\""']
const PIECES = [
  '0',
  '-',
  '.5',
  'e3',
  '99999999999999999999',
  ';',
  '=',
  '"',
  '\\',
  '%"',
  '%',
  ',',
  ' ',
  '\t',
  'ä',
  '٥',
  '\u0000',
  '\u007f',
  '\ud800',
  '?1',
  ':YWI=:',
  '@1',
  '(1 2)',
  '*',
  '__proto__',
  'x'.repeat(300),
  '%e2%82',
  ';job="k"',
]

export const tokenText = (random: Random) => mangle(random, pick(random, TOKENS))
export const keyText = (random: Random) => mangle(random, pick(random, KEYS))

/** Leaves some as they are, cuts, repeats, and puts strange pieces into the others. */
export function mangle(random: Random, text: string): string {
  let result = text
  while (random() < 0.7) {
    const at = Math.floor(random() * (result.length + 1))
    const to = at + Math.floor(random() * 4)
    const piece = pick(random, [
      () => pick(random, PIECES),
      () => '',
      () => result.slice(at, to).repeat(2),
      () => String.fromCharCode(Math.floor(random() * 0x180)),
    ])()
    result = result.slice(0, at) + piece + result.slice(to)
  }
  return result
}

const VALUES: readonly unknown[] = [
  undefined,
  null,
  0,
  1,
  7,
  -1,
  1.5,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  1e15,
  999_999_999_999_999,
  2 ** 53,
  '',
  '7',
  'job',
  'a\u0000b',
  '\udfff',
  'x'.repeat(256),
  '💸'.repeat(255),
  true,
  [],
  ['job'],
  {},
  { jobId: 'job' },
  10n,
]

/** A value of any kind where one of a certain kind is meant. */
export const anyValue = (random: Random): unknown => pick(random, VALUES)

/** An object whose members may be missing, of the wrong kind, or good. */
export function anyMessage(random: Random): unknown {
  if (random() < 0.1) return anyValue(random)
  const good: Record<string, unknown> = {
    jobId: 'job',
    owner: 'w-1',
    generation: 7,
    leaseId: 'a',
    ttlMs: 1_000,
    atLeast: 5,
    olderThanMs: 0,
    limit: 10,
  }
  for (const name of Object.keys(good)) {
    if (random() < 0.2) good[name] = anyValue(random)
    if (random() < 0.1) delete good[name]
  }
  if (random() < 0.1) Object.defineProperty(good, '__proto__', { value: 1, enumerable: true })
  return good
}

const TARGETS = [
  '/leases/job/claim',
  '/leases/job/renew',
  '/leases/job/complete',
  '/leases/job/release',
  '/leases/job/raise',
  '/leases/job/force-release',
  '/leases/job/reopen',
  '/leases/job',
  '/leases?status=leased&limit=10&expired=true',
  '/lease-maintenance/prune',
  '/fences/job/advance',
  '/fences/job/seal',
  '/fences/job',
]
const IDS = ['a%2Fb', '%E0%A4%A', '%00', '..', '.', 'a%252Fb', '%F0%9F%92%B8', '', '__proto__']

export function target(random: Random): string {
  const text = pick(random, TARGETS)
  if (random() < 0.3) return text.replace('job', pick(random, IDS))
  return random() < 0.4 ? mangle(random, text) : text
}
