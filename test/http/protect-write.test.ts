import { describe, expect, it } from 'vitest'
import { insteadOfUnguarded } from '../../src/http/protect-write.ts'
import type { RequestFence } from '../../src/http/request-fence.ts'

const intent = { token: { jobId: 'job', generation: 7 }, scope: '' }
const instead = (status: number, known: object = {}) => {
  const fence = { accounted: false, fenced: true, intent, ...known }
  return insteadOfUnguarded(fence as unknown as RequestFence<unknown, 'sync'>, status)
}

describe('an answer that no write stands behind', () => {
  it.each([200, 204, 299])('of %i is replaced', (status) => {
    expect(instead(status)).toMatchObject({
      status: 500,
      headers: { 'Content-Type': 'application/problem+json', 'Cache-Control': 'no-store' },
    })
  })

  it.each([101, 199, 300, 404, 500])('of %i is no success', (status) => {
    expect(instead(status)).toBeUndefined()
  })

  it('is let through once something was done, and where no token was borne', () => {
    expect(instead(200, { accounted: true })).toBeUndefined()
    expect(instead(200, { fenced: false })).toBeUndefined()
  })
})
