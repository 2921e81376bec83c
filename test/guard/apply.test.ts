import { describe, expect, it } from 'vitest'
import { jsonCodec } from 'writefence'
import { failure, intent } from '../../src/conformance/fence-destination.ts'
import { runnable } from '../../src/guard/apply.ts'
import { SqliteDestination } from '../support/sqlite-destination.ts'

describe('an apply that a synchronous engine cannot run', () => {
  it('an async function is refused before it is called', async () => {
    const { guard } = new SqliteDestination()
    const apply = async () => expect.fail('it ran')
    const error = await failure(guard.write(intent(5, 'x'), apply as never))
    expect(error).toMatchObject({ name: 'TypeError', message: expect.stringContaining('async') })
    expect(await guard.inspect('job')).toBeUndefined()
  })

  // biome-ignore-start lint/suspicious/noThenProperty: thenables are the case
  it.each<[string, unknown, says: string]>([
    ['a promise', () => Promise.resolve(1), 'a promise'],
    ['a promise that rejects', () => Promise.reject(new Error('nobody hears it')), 'a promise'],
    ['a thenable', () => ({ then: () => {} }), 'a promise'],
    [
      'a function that is a thenable',
      () => Object.assign(() => {}, { then: () => {} }),
      'a promise',
    ],
    ['a generator', () => (function* () {})(), 'an iterator'],
    ['an iterator that cannot be ended', () => iterator({ next: () => {} }), 'an iterator'],
  ])('one that returns %s is undone', async (_, apply, says) => {
    const d = new SqliteDestination()
    for (const operationId of ['x', undefined]) {
      const call = d.guard.write(intent(5, operationId), (tx) => {
        d.appends('half')(tx)
        return (apply as () => never)()
      })
      const error = await failure(call)
      expect(error).toBeInstanceOf(TypeError)
      expect((error as Error).message).toContain(`must not return ${says}`)
      if (says === 'a promise') expect((error as Error).message).toContain('nor recorded')
    }
    expect(d.log()).toEqual([])
    expect((await d.write(intent(5, 'x'))).status).toBe('applied')
  })

  it.each<[string, unknown]>([
    ['whose member is named then', { then: 'the next step' }],
    ['that is listed and has a next', iterator({ next: 'page 2' })],
  ])('data %s is data', async (_, data) => {
    const d = new SqliteDestination()
    const outcome = await d.guard.write(intent(5), d.appends('x', data))
    expect(outcome).toMatchObject({ status: 'applied', result: data })
    expect(d.log()).toEqual(['x'])
  })
  // biome-ignore-end lint/suspicious/noThenProperty: thenables are the case

  it('what is no function is refused, and the store is not asked', async () => {
    const { guard } = new SqliteDestination()
    const error = await failure(guard.write(intent(1), 'apply' as never))
    expect(error).toBeInstanceOf(TypeError)
    expect(error).toMatchObject({ message: 'apply must be a function' })
    expect(await guard.inspect('job')).toBeUndefined()
  })
})

describe('an apply that an asynchronous engine runs', () => {
  const given = (value: unknown) => async (tx: string) => [tx, await value]

  it('may be async: what it comes to is spelled', async () => {
    const apply = given(Promise.resolve(1))
    const run = runnable<string, unknown, 'async'>('async', { operationId: 'x' }, apply, jsonCodec)
    expect(await run('tx')).toEqual({ value: ['tx', 1], text: '["tx",1]' })
  })

  it('fails where its result cannot be spelled, if it could be asked for again', async () => {
    const run = (operationId: string | undefined) =>
      runnable<string, unknown, 'async'>('async', { operationId }, given(1n), jsonCodec)('tx')
    expect(await failure(run('x') as Promise<unknown>)).toBeInstanceOf(TypeError)
    expect(await run(undefined)).toEqual({ value: ['tx', 1n], text: undefined })
  })
})

function iterator(members: { next: unknown }): unknown {
  return Object.assign([1], members)
}
