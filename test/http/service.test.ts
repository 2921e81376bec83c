import { describe, expect, it } from 'vitest'
import { checkAuthorize, jsonAnswer } from '../../src/http/service.ts'

describe('who may call a service', () => {
  it("'none' lets everybody call everything", async () => {
    await checkAuthorize({ authorize: 'none' }, { authorize: true })({}, {})
  })

  it('a hook that throws forbids, and what it threw is the cause', async () => {
    const cause = new Error('no such user')
    const authorize = () => Promise.reject(cause)
    const call = checkAuthorize({ authorize }, { authorize: true })({}, {})
    await expect(call).rejects.toMatchObject({ code: 'forbidden', message: 'not allowed', cause })
  })

  it('must be said, with advice', () => {
    expect(() => checkAuthorize(undefined, { authorize: true })).toThrow(
      "authorize must be a function that says who may call what, or 'none' to let everybody",
    )
  })
})

describe('an answer of a service', () => {
  it.each([
    [undefined, undefined],
    [0, '1'],
    [1_000, '1'],
    [1_001, '2'],
  ])('a wait of %j ms is told in whole seconds', (retryAfterMs, told) => {
    const { headers } = jsonAnswer({ status: 409, body: {}, retryAfterMs })
    expect(headers['Retry-After']).toBe(told)
    expect(headers).toMatchObject({
      'Content-Type': 'application/json',
      'Cache-Control': 'no-store',
    })
  })
})
