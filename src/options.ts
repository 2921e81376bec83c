/** What callers pass, and what each option may be: checked at once, named in the error. */

/** The names of all options of a type: `satisfies` keeps such a list in step with the type. */
export type OptionNames<Options> = { readonly [Name in keyof Options]-?: true }

/**
 * Looks at own, enumerable names only: options may be an instance of a class.
 * @throws TypeError for what is no object, and for a name that there is not: an option that is
 * misspelled may be a check that is off
 */
export function checkOptionNames(options: unknown, names: Readonly<Record<string, true>>): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    const given = Array.isArray(options) ? 'an array' : options === null ? 'null' : typeof options
    throw new TypeError(`options must be an object, not ${given}`)
  }
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(names, name))
  if (unknown === undefined) return
  const known = Object.keys(names).join(', ') || 'none'
  throw new TypeError(`there is no option ${unknown} (known: ${known})`)
}

/**
 * Looks for methods and not for a class: users write stores of their own, and two copies of the
 * package may be loaded.
 * @throws TypeError that begins with what is needed
 */
export function checkMethods<T>(
  needs: string,
  value: T,
  methods: readonly (keyof T & string)[],
): void {
  const missing = methods.find((name) => typeof Reflect.get(Object(value), name) !== 'function')
  if (missing === undefined) return
  throw new TypeError(`${needs}: what it was given has no method ${missing}`)
}

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
