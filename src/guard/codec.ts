/** How results are recorded: a replayed answer must equal the first one. */

/** Replaces the JSON spelling of results. `undefined` is recorded as absence and never seen. */
export interface Codec {
  /** @throws TypeError where the value cannot come back as it was: the write is undone */
  encode(value: unknown): string
  decode(text: string): unknown
}

/**
 * JSON that refuses what it would change: a Date, an instance of a class, NaN, -0, a hole, a member
 * that is `undefined` or a function. Members keep their order, since replays show it.
 */
export const jsonCodec: Codec = {
  encode(value) {
    return toJson(value, 'result', 'return plain data, or give the guard a codec')
  },
  decode(text) {
    return JSON.parse(text) as unknown
  },
}

/**
 * The JSON of a value that comes back from it as it was.
 * @throws TypeError naming the place that does not, below `name`, and saying what can be done
 */
export function toJson(value: unknown, name: string, advice: string): string {
  assertUnchanged(value, name, { above: new Set(), advice })
  return JSON.stringify(value)
}

/** @throws TypeError where the codec refuses the value, or spells it as anything but a string */
export function encodeResult(value: unknown, codec: Codec): string | undefined {
  if (value === undefined) return undefined
  const text: unknown = codec.encode(value)
  if (typeof text !== 'string') throw new TypeError('codec.encode must return a string')
  return text
}

export function decodeResult(text: string | undefined, codec: Codec): unknown {
  return text === undefined ? undefined : codec.decode(text)
}

interface Walk {
  readonly above: Set<object>
  readonly advice: string
}

function assertUnchanged(value: unknown, path: string, walk: Walk): void {
  const { above } = walk
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return
  if (typeof value === 'number') {
    if (Number.isFinite(value) && !Object.is(value, -0)) return
    throw changed(path, Object.is(value, -0) ? '-0' : String(value), walk)
  }
  if (typeof value !== 'object') throw changed(path, typeof value, walk)
  if (above.has(value)) throw changed(path, 'a cycle', walk)
  above.add(value)
  if (Array.isArray(value)) assertArray(value, path, walk)
  else assertRecord(value, path, walk)
  above.delete(value)
}

function assertArray(value: unknown[], path: string, walk: Walk): void {
  if (Object.getPrototypeOf(value) !== Array.prototype) {
    throw changed(path, `an instance of ${value.constructor?.name ?? 'a class'}`, walk)
  }
  if (Reflect.ownKeys(value).length !== value.length + 1) {
    throw changed(path, 'an array with holes or members of its own', walk)
  }
  for (let index = 0; index < value.length; index += 1) {
    assertUnchanged(value[index], `${path}[${index}]`, walk)
  }
}

function assertRecord(value: object, path: string, walk: Walk): void {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== null && prototype !== Object.prototype) {
    throw changed(path, `an instance of ${value.constructor?.name ?? 'a class'}`, walk)
  }
  for (const key of Reflect.ownKeys(value)) {
    const property = Object.getOwnPropertyDescriptor(value, key)
    if (typeof key === 'symbol' || !property?.enumerable || !('value' in property)) {
      throw changed(`${path}[${String(key)}]`, 'no plain member', walk)
    }
    assertUnchanged(property.value, `${path}.${key}`, walk)
  }
}

function changed(path: string, what: string, { advice }: Walk): TypeError {
  return new TypeError(
    `${path} is ${what}, which does not come back from JSON as it was: ${advice}`,
  )
}
