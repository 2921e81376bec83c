import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson, type FingerprintParts, fingerprintOf } from '../../src/wire/fingerprint.ts'

const base: FingerprintParts = {
  method: 'POST',
  target: '/a?b=1',
  contentType: 'application/json',
  body: { kind: 'parsed', value: { amount: 5 } },
}
const digest = (change: Partial<FingerprintParts> = {}) => fingerprintOf({ ...base, ...change })
const parsed = (value: unknown) => digest({ body: { kind: 'parsed', value } })
const malformed = expect.objectContaining({ code: 'request_malformed' })

describe('a fingerprint', () => {
  it.each<[string, Partial<FingerprintParts>]>([
    ['the method', { method: 'PUT' }],
    ['R85: the path', { target: '/b?b=1' }],
    ['the query', { target: '/a?b=2' }],
    ['the content type', { contentType: 'text/plain' }],
    ['the absence of a content type', { contentType: undefined }],
    ['the body', { body: { kind: 'parsed', value: { amount: 6 } } }],
    ['the absence of a body', { body: { kind: 'none' } }],
    ['how the body was read', { body: { kind: 'raw', data: '{"amount":5}' } }],
  ])('changes with %s', (_, change) => {
    expect(digest(change)).not.toBe(digest())
  })

  it('does not change with the charset or case of the content type', () => {
    expect(digest({ contentType: 'Application/JSON; charset=utf-8' })).toBe(digest())
  })

  it('keeps its parts apart', () => {
    const one = digest({ method: 'A', target: '/b"', contentType: 'c' })
    expect(digest({ method: 'A","/b', target: '"', contentType: 'c' })).not.toBe(one)
  })

  it('of bytes and of the text of these bytes is the same', () => {
    const data = 'a,b\né'
    const text = digest({ body: { kind: 'raw', data } })
    expect(digest({ body: { kind: 'raw', data: Buffer.from(data) } })).toBe(text)
  })

  it('R103: of a body that nobody has read is refused with advice', () => {
    const unread = () => digest({ body: { kind: 'unread' } })
    expect(unread).toThrow(malformed)
    expect(unread).toThrow(/before the guard/)
  })

  it('R103: of a multipart body is refused with advice, unless the bytes are there', () => {
    const contentType = 'multipart/form-data; boundary=x'
    expect(() => digest({ contentType })).toThrow(malformed)
    const body = { kind: 'raw', data: '--x--' } as const
    expect(digest({ contentType, body })).toMatch(/^[0-9a-f]{64}$/)
  })
})

describe('the canonical text of a body', () => {
  it('R82: puts members in code-unit order, inner ones too', () => {
    expect(canonicalJson({ ä: 1, z: { b: 1, a: 2 }, Z: 3, _: [{ y: 1, x: 2 }] })).toBe(
      '{"Z":3,"_":[{"x":2,"y":1}],"z":{"a":2,"b":1},"ä":1}',
    )
  })

  it('R82: is the same under two locales', () => {
    const script = `
      import { canonicalJson } from './src/wire/fingerprint.ts'
      process.stdout.write(canonicalJson({ ä: 1, z: 1, Z: 1, _: 1, i: 1, I: 1 }))`
    const [german, turkish] = ['de_DE.UTF-8', 'tr_TR.UTF-8'].map((locale) =>
      execFileSync(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', script], {
        env: { ...process.env, LANG: locale, LC_ALL: locale },
        encoding: 'utf8',
      }),
    )
    expect(german).toBe('{"I":1,"Z":1,"_":1,"i":1,"z":1,"ä":1}')
    expect(turkish).toBe(german)
  })

  it('does not depend on the order in which members came, and parses to the same data', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const value: unknown = JSON.parse(text)
        const canonical = canonicalJson(value)
        expect(JSON.parse(canonical)).toEqual(value)
        expect(canonicalJson(reversed(value))).toBe(canonical)
      }),
    )
  })

  it.each(['{"__proto__":1}', '{"constructor":{"prototype":1}}', '{"toJSON":1}'])(
    'R68: %s is told from {}',
    (text) => {
      expect(canonicalJson(JSON.parse(text))).toBe(text)
      expect(parsed(JSON.parse(text))).not.toBe(parsed({}))
    },
  )

  it('reads forms, whose parsers leave out the prototype', () => {
    expect(canonicalJson(Object.assign(Object.create(null), { b: '1', a: ['2'] }))).toBe(
      '{"a":["2"],"b":"1"}',
    )
  })

  it('reads what a reviver made of a date as JSON does, and leaves out undefined members', () => {
    expect(canonicalJson({ at: new Date(0), gone: undefined })).toBe(
      '{"at":"1970-01-01T00:00:00.000Z"}',
    )
  })

  it('refuses instances, whose data cannot be seen', () => {
    expect(() => parsed({ when: new Map([[1, 2]]) })).toThrow(TypeError)
  })

  it('refuses a body that is nested too deeply, without overflowing the stack', () => {
    const deep: unknown = JSON.parse('['.repeat(50_000) + ']'.repeat(50_000))
    expect(() => parsed(deep)).toThrow(malformed)
    expect(canonicalJson(JSON.parse('['.repeat(1000) + ']'.repeat(1000)))).toHaveLength(2000)
  })
})

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  const copy = Object.create(null) as Record<string, unknown>
  for (const [name, member] of Object.entries(value).reverse()) copy[name] = reversed(member)
  return copy
}
