import { describe, expect, it } from 'vitest'
import { RequestRefusedError, StoreUnavailableError, WriteRefusedError } from 'writefence'
import { isRetryable, requestCodes, verdictCodes } from '../../src/errors.ts'
import {
  parseProblem,
  problemError,
  problemHeaders,
  problemOf,
  problemStatus,
} from '../../src/wire/problem.ts'

const sent = { jobId: 'job', generation: 5, operationId: 'op' }
const json = (value: unknown) => JSON.stringify(value)
const read = (value: unknown) => parseProblem('application/problem+json', json(value))

describe('the status of a code', () => {
  it.each([
    ['token_required', 428],
    ['token_malformed', 400],
    ['operation_id_required', 400],
    ['operation_id_malformed', 400],
    ['request_malformed', 400],
    ['token_rejected', 403],
    ['forbidden', 403],
    ['stale', 412],
    ['sealed', 412],
    ['conflict', 409],
    ['mismatch', 422],
    ['in_flight', 409],
    ['outcome_unknown', 409],
    ['store_unavailable', 503],
  ] as const)('%s is %i', (code, status) => {
    expect(problemStatus(code)).toBe(status)
  })
})

describe('a refused write', () => {
  it.each(verdictCodes)('R47: %s says whether the same request may succeed later', (code) => {
    const problem = problemOf(new WriteRefusedError(code, sent))
    expect(problem).toMatchObject({ code, status: problemStatus(code), jobId: 'job' })
    expect(problem.retryable).toBe(code === 'in_flight')
    const headers = problemHeaders(new WriteRefusedError(code, sent))
    expect('Retry-After' in headers).toBe(code === 'in_flight')
  })

  it('comes back from its problem as it was', () => {
    const known = { ...sent, highestGeneration: 7, operationApplied: true }
    const error = new WriteRefusedError('stale', known)
    const problem = read(problemOf(error))
    const again = problem && problemError(problem, sent)
    expect(again).toBeInstanceOf(WriteRefusedError)
    expect({ ...again, message: again?.message }).toEqual({ ...error, message: error.message })
  })

  it('tells the verdict in a header, for whoever writes the body', () => {
    const error = new WriteRefusedError('stale', { ...sent, highestGeneration: 7 })
    expect(problemHeaders(error)).toEqual({
      'Cache-Control': 'no-store',
      'Fencing-Verdict': 'stale;highest=7',
    })
  })

  it.each([
    [undefined, '1'],
    [0, '1'],
    [1, '1'],
    [1001, '2'],
    [60_000, '5'],
  ])('in flight for %s ms: look again after %s s', (retryAfterMs, seconds) => {
    const error = new WriteRefusedError('in_flight', { ...sent, retryAfterMs })
    expect(problemHeaders(error)['Retry-After']).toBe(seconds)
  })
})

describe('a refusal at the door', () => {
  it.each(requestCodes)('%s is final, and knows no more than it was told', (code) => {
    const error = new RequestRefusedError(code, 'why', { jobId: 'job' })
    const problem = problemOf(error)
    expect(problem).toMatchObject({ code, retryable: false, jobId: 'job' })
    expect(problem.detail).toContain('why')
    expect(problem).not.toHaveProperty('operationApplied')
    expect(problemHeaders(error)).toEqual({
      'Cache-Control': 'no-store',
      'Fencing-Verdict': code,
    })
  })
})

describe('a store that is out of reach', () => {
  it.each([true, false])('says retryable: %s, and nothing of the driver', (retryable) => {
    const cause = new Error('/var/secret.db is locked')
    const error = new StoreUnavailableError('at /var/secret.db', { cause, retryable })
    const problem = problemOf(error)
    expect(json(problem)).not.toContain('secret')
    expect(problem).toMatchObject({ status: 503, code: 'store_unavailable', retryable })
    expect(problemHeaders(error)['Retry-After']).toBe('1')
    const again = read(problem)
    expect(again && problemError(again, sent)).toMatchObject({
      code: 'store_unavailable',
      retryable,
    })
  })
})

describe('an answer that is no problem of ours', () => {
  const stale = json({ code: 'stale', retryable: false })
  it.each([
    [null, stale],
    ['application/json', stale],
    ['application/problem+jsonx', stale],
    ['application/problem+json', ''],
    ['application/problem+json', 'null'],
    ['application/problem+json', '[]'],
    ['application/problem+json', '{"code":"toString"}'],
    ['application/problem+json', '{"code":7}'],
    ['application/problem+json', '{"title":"Not Found"}'],
  ])('%j %s is not read as one', (contentType, body) => {
    expect(parseProblem(contentType, body)).toBeUndefined()
  })

  it('the media type is compared as such, parameters and case aside', () => {
    expect(parseProblem('Application/Problem+JSON; charset=utf-8', stale)?.code).toBe('stale')
  })

  it('members of other types are left out', () => {
    const wrong = { highestGeneration: '7', operationApplied: 'no', retryable: 'no', jobId: 1 }
    expect(read({ code: 'stale', ...wrong })).toMatchObject({
      highestGeneration: undefined,
      operationApplied: undefined,
      retryable: false,
      jobId: undefined,
    })
  })
})

describe('the retryable refusals', () => {
  it('are those with a Retry-After', () => {
    const retryable = [...verdictCodes, ...requestCodes].filter(isRetryable)
    expect(retryable).toEqual(['in_flight'])
  })
})
