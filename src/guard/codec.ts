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
    assertUnchanged(value, 'result', new Set())
    return JSON.stringify(value)
  },
  decode(text) {
    return JSON.parse(text) as unknown
  },
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

function assertUnchanged(value: unknown, path: string, above: Set<object>): void {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return
  if (typeof value === 'number') {
    if (Number.isFinite(value) && !Object.is(value, -0)) return
    throw changed(path, Object.is(value, -0) ? '-0' : String(value))
  }
  if (typeof value !== 'object') throw changed(path, typeof value)
  if (above.has(value)) throw changed(path, 'a cycle')
  above.add(value)
  if (Array.isArray(value)) assertArray(value, path, above)
  else assertRecord(value, path, above)
  above.delete(value)
}

function assertArray(value: unknown[], path: string, above: Set<object>): void {
  if (Object.getPrototypeOf(value) !== Array.prototype) {
    throw changed(path, `an instance of ${value.constructor?.name ?? 'a class'}`)
  }
  if (Reflect.ownKeys(value).length !== value.length + 1) {
    throw changed(path, 'an array with holes or members of its own')
  }
  for (let index = 0; index < value.length; index += 1) {
    assertUnchanged(value[index], `${path}[${index}]`, above)
  }
}

function assertRecord(value: object, path: string, above: Set<object>): void {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== null && prototype !== Object.prototype) {
    throw changed(path, `an instance of ${value.constructor?.name ?? 'a class'}`)
  }
  for (const key of Reflect.ownKeys(value)) {
    const property = Object.getOwnPropertyDescriptor(value, key)
    if (typeof key === 'symbol' || !property?.enumerable || !('value' in property)) {
      throw changed(`${path}[${String(key)}]`, 'no plain member')
    }
    assertUnchanged(property.value, `${path}.${key}`, above)
  }
}

function changed(path: string, what: string): TypeError {
  return new TypeError(
    `${path} is ${what}, which does not come back from JSON as it was:` +
      ' return plain data, or give the guard a codec',
  )
}
