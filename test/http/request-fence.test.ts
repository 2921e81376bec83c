import { describe, expect, it } from 'vitest'
import { type WriteGuard, WriteRefusedError } from 'writefence'
import { AnswerVerdict } from '../../src/http/answer-verdict.ts'
import { RequestFence } from '../../src/http/request-fence.ts'
import { SqliteDestination } from '../support/sqlite-destination.ts'

/** The fence of a request whose guard gives one answer, later. */
function setUp(answer: () => Promise<unknown>) {
  const guard = { within: answer } as unknown as WriteGuard<object, 'async'>
  const verdict = new AnswerVerdict(true)
  const intent = { token: { jobId: 'job', generation: 7 }, operationId: 'op' }
  return { fence: new RequestFence(guard, intent, verdict, {}), verdict }
}

describe('within, on an engine that answers later', () => {
  it('accounts for the request once it has answered', async () => {
    const outcome = { status: 'applied', result: 1, appliedGeneration: 7, highestGeneration: 7 }
    const { fence, verdict } = setUp(async () => outcome)
    const answer = fence.within({}, () => 1)
    expect([fence.accounted, verdict.word]).toEqual([false, 'outcome_unknown'])
    expect(await answer).toBe(outcome)
    expect([fence.accounted, verdict.word]).toEqual([true, 'applied'])
    expect(() => fence.within({}, () => 1)).toThrow('operation "op" is under way or done')
  })

  it('a refusal has its status and its verdict, and the id may be used again', async () => {
    const refusal = new WriteRefusedError('sealed', { jobId: 'job', generation: 7 })
    const { fence, verdict } = setUp(() => Promise.reject(refusal))
    for (let tries = 0; tries < 2; tries += 1) {
      await expect(fence.within({}, () => 1)).rejects.toBe(refusal)
      expect(refusal).toMatchObject({ status: 412 })
      expect([fence.accounted, verdict.word]).toEqual([false, 'sealed'])
    }
  })
})

describe('an override whose id is undefined', () => {
  it("leaves the request's id to the write: a second request is a replay", async () => {
    const d = new SqliteDestination()
    const request = () => {
      const intent = { token: { jobId: 'job', generation: 7 }, operationId: 'op' }
      return new RequestFence(d.guard, intent, new AnswerVerdict(true), {})
    }
    const write = () => request().write(d.appends('op'), { operationId: undefined })
    expect((await write()).status).toBe('applied')
    expect((await write()).status).toBe('replayed')
    expect(d.log()).toEqual(['op'])
  })
})
