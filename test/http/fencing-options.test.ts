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

  it('may all be left out, or be undefined', () => {
    const { guard } = destination()
    const names = ['protect', 'mode', 'scope', 'jobId', 'fingerprint', 'deadlineMs', 'onUnknown']
    const absent = Object.fromEntries(names.map((name) => [name, undefined]))
    expect(fencing(guard)).toBeTypeOf('function')
    expect(fencing(guard, absent)).toBeTypeOf('function')
  })

  it.each([undefined, null, {}, 'guard'])('without a guard (%j) there is no guarding', (guard) => {
    expect(() => fencing(guard as never)).toThrow(TypeError)
  })
})
