/** What a duration or a count among the options may be: checked at once, named in the error. */

/** The longest duration that any option takes: 366 days, in milliseconds. */
const MAX_DURATION_MS = 366 * 24 * 60 * 60 * 1000

/**
 * Returns a duration in whole milliseconds, checked.
 * @throws TypeError where it is no number, RangeError where it is fractional, NaN, infinite, below
 * `min` (1 unless told) or above 366 days
 */
export function checkDuration(name: string, value: unknown, min = 1): number {
  return checkInteger(name, value, min, MAX_DURATION_MS, ' (milliseconds)')
}

/**
 * Returns a count, checked.
 * @throws TypeError where it is no number, RangeError where it is no integer of `min` to `max`
 */
export function checkCount(name: string, value: unknown, min: number, max: number): number {
  return checkInteger(name, value, min, max, '')
}

/**
 * Returns the value if it is one of those allowed, the first of them where it is `undefined`.
 * @throws TypeError that lists what is allowed
 */
export function checkChoice<T extends string>(
  name: string,
  value: unknown,
  allowed: readonly [T, ...T[]],
): T {
  if (value === undefined) return allowed[0]
  if (allowed.includes(value as T)) return value as T
  throw new TypeError(`${name} must be one of ${allowed.map((each) => `'${each}'`).join(', ')}`)
}

function checkInteger(
  name: string,
  value: unknown,
  min: number,
  max: number,
  unit: string,
): number {
  if (typeof value !== 'number') {
    throw new TypeError(
      `${name} must be a number${unit}, not ${value === null ? 'null' : typeof value}`,
    )
  }
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new RangeError(`${name} must be an integer from ${min} to ${max}${unit}, not ${value}`)
  }
  return value
}
