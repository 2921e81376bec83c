import { describe, expect, it } from 'vitest'
import type { WriteIntent } from 'writefence'
import { failure, intent } from '../../src/conformance/fence-destination.ts'
import { SqliteDestination } from '../support/sqlite-destination.ts'

type Guard = SqliteDestination['guard']

describe('a malformed write is refused before the store is asked', () => {
  const good = { jobId: 'job', generation: 1 }
  const malformed: [string, unknown, string][] = [
    ['no intent', undefined, 'intent'],
    ['a null intent', null, 'intent'],
    ['no token', {}, 'token'],
    ['a token that is text', { token: '7' }, 'token'],
    ['R64: a job id that is a number', { token: { ...good, jobId: 1 } }, 'jobId'],
    ['R22: generation 0', { token: { ...good, generation: 0 } }, 'generation'],
    ['R49: a generation as text', { token: { ...good, generation: '7' } }, 'generation'],
    ['R49: a BigInt', { token: { ...good, generation: 7n } }, 'generation'],
    ['R61: NaN', { token: { ...good, generation: Number.NaN } }, 'generation'],
    ['an empty leaseId', { token: { ...good, leaseId: '' } }, 'leaseId'],
    ['a null leaseId', { token: { ...good, leaseId: null } }, 'leaseId'],
    ['R67: a control character', { token: { ...good, jobId: 'a\u0000b' } }, 'jobId'],
    ['a lone surrogate', { token: { ...good, jobId: '\ud800' } }, 'jobId'],
    ['256 code points', { token: good, operationId: 'x'.repeat(256) }, 'operationId'],
    ['an empty operation id', { token: good, operationId: '' }, 'operationId'],
    ['a null operation id', { token: good, operationId: null }, 'operationId'],
    ['a fingerprint that is a number', { token: good, fingerprint: 1 }, 'fingerprint'],
    ['a scope that is null', { token: good, scope: null }, 'scope'],
    ['a mode that there is not', { token: good, mode: 'off' }, 'mode'],
  ]

  it.each(malformed)('%s', async (_, given, name) => {
    const { guard, db } = new SqliteDestination()
    const write = given as WriteIntent
    const calls = [
      () => guard.write(write, () => expect.fail('it ran')),
      () => guard.effect(write, () => expect.fail('it ran')),
      () => guard.judge(write),
      async () => guard.writeSync(write, () => expect.fail('it ran')),
      async () => guard.within(db, write, () => expect.fail('it ran')),
    ]
    for (const call of calls) {
      const error = await failure(call())
      expect(error).toSatisfy((each) => each instanceof TypeError || each instanceof RangeError)
      expect((error as Error).message).toContain(name)
    }
    expect(db.prepare('SELECT count(*) FROM writefence_fence').pluck().get()).toBe(0)
  })

  it.each<[string, names: string, (guard: Guard) => Promise<unknown>]>([
    ['advance', 'jobId', (guard) => guard.advance({ jobId: '', generation: 1 })],
    ['seal', 'generation', (guard) => guard.seal({ jobId: 'job', generation: 1.5 })],
    ['seal, scope', 'scope', (guard) => guard.seal({ jobId: 'job', generation: 1 }, 1 as never)],
    ['reopen', 'jobId', (guard) => guard.reopen(1 as never)],
    ['inspect', 'scope', (guard) => guard.inspect('job', null as never)],
    ['unsettled', 'limit', (guard) => guard.unsettled({ limit: 0 })],
    ['unsettled, scope', 'scope', (guard) => guard.unsettled({ scope: 1 as never })],
    ['unsettled, job', 'jobId', (guard) => guard.unsettled({ jobId: '' })],
    ['unsettled, too many', 'limit', (guard) => guard.unsettled({ limit: 1001 })],
    ['prune', 'olderThanMs', (guard) => guard.prune({} as never)],
    ['prune, negative', 'olderThanMs', (guard) => guard.prune({ olderThanMs: -1 })],
    ['prune, limit', 'limit', (guard) => guard.prune({ olderThanMs: 0, limit: 10_001 })],
    [
      'prune, sealed as text',
      'sealedOnly',
      (guard) => guard.prune({ olderThanMs: 0, sealedOnly: 'false' as never }),
    ],
    [
      'prune, sealed as a number',
      'sealedOnly',
      (guard) => guard.prune({ olderThanMs: 0, sealedOnly: 0 as never }),
    ],
    ['prune, age as text', 'olderThanMs', (guard) => guard.prune({ olderThanMs: '0' as never })],
    ['resolve', 'operationId', (guard) => guard.resolve({ jobId: 'job' } as never, {} as never)],
  ])('%s rejects, naming %s, and does not throw on the stack', async (_, name, call) => {
    const { guard } = new SqliteDestination()
    const error = await failure(call(guard))
    expect(error).toSatisfy((each) => each instanceof TypeError || each instanceof RangeError)
    expect((error as Error).message).toMatch(new RegExp(`^${name} `))
  })

  it('a resolution without a status it can trust resolves nothing', async () => {
    const { guard } = new SqliteDestination()
    await failure(guard.effect(intent(1, 'x'), () => Promise.reject(new Error('boom'))))
    const operation = { jobId: 'job', operationId: 'x' }
    for (const resolution of [{}, { status: undefined }, { status: 'maybe' }, null]) {
      const call = guard.resolve(operation, resolution as never)
      expect(await failure(call)).toBeInstanceOf(TypeError)
    }
    const maybe = guard.resolve(operation, { status: 'maybe' } as never)
    expect(await failure(maybe)).toMatchObject({
      message: expect.stringMatching(/^resolution\.st/),
    })
    const unspelled = guard.resolve(operation, { status: 'applied', result: new Date(0) })
    expect(await failure(unspelled)).toBeInstanceOf(TypeError)
    expect(await guard.unsettled()).toHaveLength(1)
  })

  it('what a caller changes after the call does not count', async () => {
    const d = new SqliteDestination()
    const token = { jobId: 'job', generation: 1, leaseId: 'a' }
    const write = { token, operationId: 'x' }
    const call = d.write(write, 'text')
    token.generation = 9
    write.operationId = 'y'
    expect((await call).appliedGeneration).toBe(1)
    expect(await d.guard.judge(intent(1, 'x'))).toMatchObject({ status: 'replay' })
  })
})
