import { describe, expect, it } from 'vitest'
import { RequestRefusedError } from 'writefence'
import { parseJson, readJson } from '../../src/http/json-body.ts'

async function* chunks(...all: (Uint8Array | string | Error)[]) {
  for (const each of all) {
    if (each instanceof Error) throw each
    yield each
  }
}

describe('a body of JSON', () => {
  it('is read in any pieces, bytes or text', async () => {
    expect(await readJson(chunks('{"a":', Buffer.from('"é'), Buffer.from('"}')))).toEqual({
      a: 'é',
    })
    const [first, second] = [Buffer.from('"é"').subarray(0, 2), Buffer.from('"é"').subarray(2)]
    expect(await readJson(chunks(first, second))).toBe('é')
    expect(await readJson(chunks())).toBeUndefined()
    expect(parseJson(new Uint8Array())).toBeUndefined()
  })

  it('that is cut off says so, with the cause', async () => {
    const cause = new Error('ECONNRESET')
    const error = await readJson(chunks('{', cause)).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(RequestRefusedError)
    const message = 'the request cannot be read: the body was cut off'
    expect(error).toMatchObject({ code: 'request_malformed', message, cause })
  })

  it('that is not JSON in UTF-8 says so, with the cause', async () => {
    for (const bytes of [Buffer.from('{'), Buffer.from([0x22, 0xff, 0x22])]) {
      const error = await readJson(chunks(bytes)).catch((reason: unknown) => reason)
      const message = 'the request cannot be read: the body is not JSON in UTF-8'
      expect(error).toMatchObject({ code: 'request_malformed', message, cause: expect.any(Error) })
    }
  })

  it('that is too long is not read to its end', async () => {
    const late = new Error('read on')
    const long = readJson(chunks('x'.repeat(65_536), 'x', late))
    await expect(long).rejects.toThrow('the body is longer than 65536 bytes')
    expect(await readJson(chunks(`"${'x'.repeat(65_534)}"`))).toHaveLength(65_534)
  })
})
