import { describe, expect, it } from 'vitest'
import { fencing } from 'writefence/express'
import { destination } from '../express/harness.ts'

describe('the options of fencing', () => {
  it.each([
    ['protect', 'writes'],
    ['mode', 'observe'],
    ['scope', 7],
    ['scope', 'a\nb'],
    ['jobId', 'id'],
    ['verifyToken', true],
    ['requireOperationId', 'yes'],
    ['fingerprint', true],
    ['fingerprint', 'sha256'],
    ['recordable', [409]],
    ['errorsMean', 'nothing'],
    ['deadlineMs', 0],
    ['deadlineMs', '60s'],
    ['deadlineMs', Number.NaN],
    ['onUnknown', 'retry'],
    ['afterOverdue', true],
    ['maxBodyBytes', -1],
    ['maxBodyBytes', 1.5],
  ])('%s: %j is refused at once, by name', (name, value) => {
    const { guard } = destination()
    expect(() => fencing(guard, { [name]: value } as never)).toThrow(name)
  })

  it('an unknown one is refused: a check that is misspelled is a check that is off', () => {
    const { guard } = destination()
    expect(() => fencing(guard, { verifytoken: () => true } as never)).toThrow('verifytoken')
  })

  const choices: readonly (readonly [name: string, ...allowed: string[]])[] = [
    ['protect', 'write', 'handler'],
    ['mode', 'enforce', 'report', 'once-fenced'],
    ['errorsMean', 'unknown', 'not_applied'],
    ['onUnknown', 'refuse', 'rerun'],
    ['afterOverdue', 'refuse', 'proceed'],
  ]

  it.each(choices)('%s is one of those that are listed', (name, ...allowed) => {
    const { guard } = destination()
    const list = allowed.map((each) => `'${each}'`).join(', ')
    const other = { [name]: 'other' } as never
    expect(() => fencing(guard, other)).toThrow(new TypeError(`${name} must be one of ${list}`))
    for (const value of allowed) {
      const options = { jobId: () => 'job', [name]: value }
      expect(fencing(guard, options as never)).toBeTypeOf('function')
    }
  })

  it('say what they need', () => {
    const { guard } = destination()
    const make = (options: object) => () => fencing(guard, options as never)
    expect(make({ mode: 'once-fenced' })).toThrow(
      "mode 'once-fenced' needs jobId: without a token nothing else names the job",
    )
    expect(make({ jobId: 'job' })).toThrow('jobId must be a function')
    expect(make({ fingerprint: true })).toThrow('fingerprint (if not false) must be a function')
    expect(make({ requireOperationId: 1 })).toThrow('requireOperationId must be true or false')
    expect(make({ verifytoken: () => true })).toThrow(
      'there is no option verifytoken (known: protect, mode, ',
    )
  })

  it('may all be left out, or be undefined', () => {
    const { guard } = destination()
    const names = ['protect', 'mode', 'scope', 'jobId', 'fingerprint', 'deadlineMs', 'onUnknown']
    const absent = Object.fromEntries(names.map((name) => [name, undefined]))
    expect(fencing(guard)).toBeTypeOf('function')
    expect(fencing(guard, absent)).toBeTypeOf('function')
  })

  it.each([undefined, null, {}, 'guard'])('without a guard (%j) there is no guarding', (guard) => {
    const says = 'fencing needs a WriteGuard: what it was given has no method write'
    expect(() => fencing(guard as never)).toThrow(new TypeError(says))
  })
})
