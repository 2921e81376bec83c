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
