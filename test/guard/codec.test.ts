import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { jsonCodec } from 'writefence'
import { decodeResult, encodeResult } from '../../src/guard/codec.ts'

class Money {
  readonly amount = 1
}
class List extends Array<number> {
  toJSON() {
    return 'other'
  }
}
const cycle: Record<string, unknown> = {}
cycle.self = [cycle]
const shared = { a: 1 }

describe('R91: a result that JSON would change is refused', () => {
  it.each<[string, unknown]>([
    ['a Date', new Date(0)],
    ['a BigInt', 1n],
    ['an instance of a class', new Money()],
    ['an instance that says how it is spelled', { toJSON: () => 1 }],
    ['an Error', new Error('x')],
    ['a Map', new Map()],
    ['a Buffer', Buffer.from('x')],
    ['a function', () => 1],
    ['a symbol', Symbol('x')],
    ['NaN', Number.NaN],
    ['Infinity', Number.POSITIVE_INFINITY],
    ['-0', -0],
    ['an array with a hole', Object.assign(new Array(2), { 1: 1 })],
    ['an array with undefined', [undefined]],
    ['an array with a member of its own', Object.assign([1], { total: 1 })],
    ['an array of a class', List.from([1])],
    ['a member that is undefined', { a: undefined }],
    ['a member under a symbol', { [Symbol('x')]: 1 }],
    [
      'a getter',
      {
        get a() {
          return 1
        },
      },
    ],
    ['a member that is not enumerable', Object.defineProperty({}, 'a', { value: 1 })],
    ['a cycle', cycle],
    ['a Date deep inside', { rows: [{ at: new Date(0) }] }],
  ])('%s', (_, value) => {
    expect(() => jsonCodec.encode(value)).toThrow(TypeError)
  })

  it('and the error names the place', () => {
    expect(() => jsonCodec.encode({ rows: [{ at: new Date(0) }] })).toThrow(
      'result.rows[0].at is an instance of Date',
    )
    expect(() => jsonCodec.encode([-0])).toThrow('result[0] is -0')
  })

  const nameless: object = Object.create(null)
  const ghost = new Proxy({}, { ownKeys: () => ['a'] })
  it.each<[unknown, says: string]>([
    [{ at: undefined }, 'result.at is undefined'],
    [[() => 1], 'result[0] is function'],
    [1n, 'result is bigint'],
    [Symbol('x'), 'result is symbol'],
    [Number.NaN, 'result is NaN'],
    [List.from([1]), 'result is an instance of List'],
    [new Money(), 'result is an instance of Money'],
    [Object.create(nameless), 'result is an instance of a class'],
    [Object.setPrototypeOf([1], nameless), 'result is an instance of a class'],
    [new Array(2), 'result is an array with holes or members of its own'],
    [cycle, 'result.self[0] is a cycle'],
    [{ [Symbol('x')]: 1 }, 'result[Symbol(x)] is no plain member'],
    [{ rows: Object.defineProperty({}, 'a', { value: 1 }) }, 'result.rows[a] is no plain member'],
    [ghost, 'result[a] is no plain member'],
  ])('what is wrong with it (%#), and what can be done', (value, says) => {
    const ending = 'which does not come back from JSON as it was: return plain data, or give the'
    expect(() => jsonCodec.encode(value)).toThrow(`${says}, ${ending} guard a codec`)
  })
})

describe('R91: a result that comes back as it was is recorded', () => {
  it.each<[string, unknown]>([
    ['null', null],
    ['undefined', undefined],
    ['an object without a prototype', Object.assign(Object.create(null), { a: 1 })],
    ['a member named __proto__', JSON.parse('{"__proto__":{"a":1}}')],
    ['one object in two places', { left: shared, right: [shared] }],
    ['a lone surrogate', '\ud800'],
  ])('%s', (_, value) => {
    expect(decodeResult(encodeResult(value, jsonCodec), jsonCodec)).toEqual(value)
  })

  it('tells undefined, null and the text null apart', () => {
    expect([undefined, null, 'null'].map((each) => encodeResult(each, jsonCodec))).toEqual([
      undefined,
      'null',
      '"null"',
    ])
  })

  it('keeps the order of members', () => {
    expect(jsonCodec.encode({ b: 1, a: 2 })).toBe('{"b":1,"a":2}')
  })

  it('any JSON, and what is refused would have changed', () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true }), (value) => {
        let text: string
        try {
          text = jsonCodec.encode(value)
        } catch (error) {
          expect(error).toBeInstanceOf(TypeError)
          return
        }
        expect(jsonCodec.decode(text)).toEqual(value)
      }),
    )
    fc.assert(
      fc.property(fc.json(), (text) => {
        const value: unknown = JSON.parse(text)
        fc.pre(!text.includes('-0'))
        expect(jsonCodec.decode(jsonCodec.encode(value))).toStrictEqual(value)
      }),
    )
  })
})

describe("a codec of the user's", () => {
  it('must spell results as strings', () => {
    const codec = { encode: () => 1 as unknown as string, decode: () => 1 }
    expect(() => encodeResult(1, codec)).toThrow('must return a string')
  })

  it('never sees undefined', () => {
    const codec = { encode: () => expect.fail('called'), decode: () => expect.fail('called') }
    expect(decodeResult(encodeResult(undefined, codec), codec)).toBeUndefined()
  })
})
