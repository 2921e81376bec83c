import { describe, expect, it } from 'vitest'
import { good } from './good-histories.ts'
import { formatHistory, parseHistory } from './history.ts'
import { checkHistory } from './history-checker.ts'
import { applied, claim, effect, write } from './planted-calls.ts'
import { bad } from './planted-histories.ts'

describe('the history checker', () => {
  it.each(Object.entries(good))('has nothing against %s', (_, events) => {
    expect(checkHistory(events).violations).toEqual([])
  })

  it.each(bad)('catches %s: %s', (rule, _, events) => {
    expect(checkHistory(events).violations.map((each) => each.rule)).toEqual([rule])
    const written = parseHistory(formatHistory(events))
    expect(checkHistory(written).violations).toEqual(checkHistory(events).violations)
  })

  it('says how much it has judged', () => {
    const events = [...claim('a', 1, 'x'), ...write('b', 1, applied(1)), effect('b', 1)]
    expect(checkHistory(events).counts).toEqual({ events: 5, operations: 1, effects: 1, claims: 1 })
  })
})

describe('a history that cannot be judged', () => {
  const asked = '{"event":"invoke","call":"a","verb":"advance","jobId":"j","generation":1}'
  const told = '{"event":"answer","call":"a","outcome":"done"}'

  it.each([
    ['not JSON', 'hello'],
    ['event must be one of', 'null'],
    ['event must be one of', '{"event":"toString"}'],
    ['verb must be one of', '{"event":"invoke","call":"a","verb":"valueOf","jobId":"j"}'],
    ['invoke needs jobId', '{"event":"invoke","call":"a","verb":"claim"}'],
    ['write needs generation', '{"event":"invoke","call":"a","verb":"write","jobId":"j"}'],
    ['raise needs atLeast', '{"event":"invoke","call":"a","verb":"raise","jobId":"j"}'],
    ['generation must be an integer', '{"event":"fence","jobId":"j","generation":"1"}'],
    ['jobId must be a string', '{"event":"fence","jobId":1,"generation":1}'],
    ['needs operationId or call', '{"event":"applied","jobId":"j","generation":1}'],
    [
      'operationApplied must be',
      '{"event":"answer","call":"a","outcome":"x","operationApplied":1}',
    ],
    ['was not invoked', told],
  ])('is refused with its line: %s', (problem, line) => {
    expect(() => parseHistory(`\n${line}`)).toThrow(`line 2: `)
    expect(() => parseHistory(line)).toThrow(problem)
  })

  it('has a call that is asked or answered twice, or answered by what is no answer to it', () => {
    expect(() => parseHistory(`${asked}\n${asked}`)).toThrow('line 2: call a was invoked before')
    expect(() => parseHistory(`${asked}\n${told}\n${told}`)).toThrow('line 3: call a was answered')
    expect(() => parseHistory(`${asked}\n${told.replace('done', 'applied')}`)).toThrow(
      'line 2: applied is no answer to advance: done, refused, unknown are',
    )
    expect(parseHistory(`${asked}\n${told}`)).toHaveLength(2)
  })
})
