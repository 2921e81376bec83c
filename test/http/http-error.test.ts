import { describe, expect, it } from 'vitest'
import {
  LeaseLostError,
  RequestRefusedError,
  StoreUnavailableError,
  WriteRefusedError,
} from 'writefence'
import { problemAnswer, withHttp } from '../../src/http/http-error.ts'

const known = { jobId: 'job', generation: 7 }

describe('an error on its way to an answer', () => {
  it.each([
    [new WriteRefusedError('in_flight', known), 409, 'application/problem+json'],
    [new RequestRefusedError('token_required'), 428, 'application/problem+json'],
    [new StoreUnavailableError('down'), 503, 'application/problem+json'],
  ])('%s has status, statusCode and headers', (error, status, type) => {
    expect(withHttp(error)).toBe(error)
    expect(error).toMatchObject({ status, statusCode: status })
    const answer = problemAnswer(error)
    expect(answer?.status).toBe(status)
    expect(answer?.headers['Content-Type']).toBe(type)
    expect(answer?.headers).toMatchObject((error as unknown as { headers: object }).headers)
  })

  it.each([
    new Error('mine'),
    new LeaseLostError('expired', known),
    new TypeError('misuse'),
    { code: 'stale' },
    undefined,
  ])('%s is left as it is', (error) => {
    expect(withHttp(error)).toBe(error)
    expect(problemAnswer(error)).toBeUndefined()
    expect(error ?? {}).not.toHaveProperty('status')
  })
})
