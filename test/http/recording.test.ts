import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { jsonCodec } from 'writefence'
import { recordAnswer, replayAnswer } from '../../src/http/recording.ts'

const held = (headers: Record<string, string | string[]>, body: Uint8Array | undefined) => ({
  status: 201,
  headers,
  body,
})

describe('what is recorded of an answer', () => {
  it('comes back through JSON as it was: status, bytes, headers of the allow-list', () => {
    const headers = {
      'content-type': 'text/csv; charset=latin1',
      location: '/a',
      etag: '"1"',
      'content-language': 'fr',
      link: ['<a>', '<b>'],
    }
    const body = Uint8Array.from({ length: 256 }, (_, index) => index)
    const text = jsonCodec.encode(recordAnswer(held(headers, body), 1000))
    const replayed = replayAnswer(jsonCodec.decode(text))
    expect(replayed.status).toBe(201)
    expect(replayed.headers).toEqual(headers)
    expect([...replayed.body]).toEqual([...body])
  })

  it.each([
    'set-cookie',
    'content-encoding',
    'content-length',
    'transfer-encoding',
    'date',
    'connection',
    'keep-alive',
    'cache-control',
    'fencing-verdict',
    'idempotent-replayed',
    'x-anything',
  ])('is nothing of %s', (name) => {
    const recorded = recordAnswer(held({ [name]: 'gzip' }, new Uint8Array()), 1000)
    expect(recorded.headers).toEqual({})
  })

  it('without its body says nothing about one', () => {
    const headers = { 'content-type': 'a/b', 'content-language': 'fr', location: '/a', etag: '"1"' }
    const recorded = recordAnswer(held(headers, undefined), 1000)
    expect(recorded).toEqual({ status: 201, headers: { location: '/a', etag: '"1"' }, body: null })
    expect(replayAnswer(recorded).body).toHaveLength(0)
  })
})

describe('a body that was encoded on its way', () => {
  const text = 'x'.repeat(100)
  const kept = (encoding: string, body: Uint8Array, limit = 100) => {
    const headers = { 'content-encoding': encoding, 'content-type': 'text/plain' }
    return recordAnswer(held(headers, body), limit)
  }

  it.each([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['GZip', gzipSync],
  ] as const)('%s is recorded as it was before, up to the limit', (encoding, encode) => {
    const body = Buffer.from(text).toString('base64')
    const headers = { 'content-type': 'text/plain' }
    expect(kept(encoding, encode(text))).toEqual({ status: 201, headers, body })
    expect(kept(encoding, encode(text), 99)).toEqual({ status: 201, headers: {}, body: null })
  })

  it.each(['zstd', 'gzip, br', 'gzip'])('cannot be decoded (%s): there is none', (encoding) => {
    expect(kept(encoding, Buffer.from(text)).body).toBeNull()
  })

  it('that is empty is kept, whatever it is said to be', () => {
    expect(kept('zstd', new Uint8Array()).body).toBe('')
    expect(kept('gzip', gzipSync(''), 0).body).toBe('')
  })
})

describe('what is replayed of a result that is no recorded answer', () => {
  it.each([
    [{ balance: 5 }, '{"balance":5}'],
    [null, 'null'],
    ['text', '"text"'],
    [7, '7'],
    [{ status: 200 }, '{"status":200}'],
    [{ status: 200, headers: {} }, '{"status":200,"headers":{}}'],
    [{ status: 200, headers: null, body: '' }, '{"status":200,"headers":null,"body":""}'],
    [{ status: '200', headers: {}, body: '' }, '{"status":"200","headers":{},"body":""}'],
    [{ status: 200, headers: '', body: '' }, '{"status":200,"headers":"","body":""}'],
    [{ status: 200, headers: {}, body: 7 }, '{"status":200,"headers":{},"body":7}'],
  ])('%j is answered as JSON', (result, body) => {
    expect(replayAnswer(result)).toEqual({
      status: 200,
      headers: { 'content-type': 'application/json' },
      body,
    })
  })

  it('nothing is answered as 204', () => {
    expect(replayAnswer(undefined)).toEqual({ status: 204, headers: {}, body: '' })
  })
})
