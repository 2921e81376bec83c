import { describe, expect, it } from 'vitest'
import { failure, intent, refused } from '../../src/conformance/fence-destination.ts'
import { SqliteDestination } from '../support/sqlite-destination.ts'

describe('a bound fence', () => {
  it('is the same verbs with the intent filled in', async () => {
    const d = new SqliteDestination()
    const bound = d.guard.bind(intent(5, 'x', { scope: 's', fingerprint: 'f' }))
    expect(bound.token).toEqual({ jobId: 'job', generation: 5, leaseId: 'a' })
    expect(await bound.judge()).toEqual({ status: 'apply', highestGeneration: 5 })
    expect(await bound.write(d.appends('x', 'r'))).toMatchObject({ status: 'applied' })
    expect(await bound.effect(async () => 'again')).toMatchObject({ status: 'replayed' })
    d.db.exec('BEGIN')
    expect(bound.within(d.db, d.appends('again'))).toMatchObject({ status: 'replayed' })
    d.db.exec('COMMIT')
    expect(await bound.advance()).toMatchObject({ scope: 's', highestGeneration: 5 })
    expect(await bound.seal()).toMatchObject({ scope: 's', sealed: true })
    expect(await d.guard.inspect('job')).toBeUndefined()
    expect(d.log()).toEqual(['x'])
  })

  it('takes another operation id and fingerprint for one call', async () => {
    const d = new SqliteDestination()
    const bound = d.guard.bind(intent(5, 'x', { fingerprint: 'f' }))
    await bound.write(d.appends('x'))
    const y = { operationId: 'y', fingerprint: 'g' }
    expect((await bound.write(d.appends('y'), y)).status).toBe('applied')
    expect((await bound.effect(async () => 1, {}, y)).status).toBe('replayed')
    d.db.exec('BEGIN')
    expect(bound.within(d.db, d.appends('y'), y).status).toBe('replayed')
    d.db.exec('COMMIT')
    await refused(bound.write(d.appends('x'), { fingerprint: 'g' }), 'mismatch')
    expect((await bound.write(d.appends('x'))).status).toBe('replayed')
  })

  it('takes nothing from an override that is undefined: the write keeps its id', async () => {
    const d = new SqliteDestination()
    const bound = d.guard.bind(intent(5, 'x', { fingerprint: 'f' }))
    const nothing = { operationId: undefined, fingerprint: undefined }
    expect((await bound.write(d.appends('x'), nothing)).status).toBe('applied')
    expect((await bound.write(d.appends('x'), nothing)).status).toBe('replayed')
    expect((await bound.effect(async () => 1, {}, nothing)).status).toBe('replayed')
    d.db.exec('BEGIN')
    expect(bound.within(d.db, d.appends('x'), nothing).status).toBe('replayed')
    d.db.exec('COMMIT')
    expect((await d.guard.write(bound.intent, d.appends('x'))).status).toBe('replayed')
    expect(d.log()).toEqual(['x'])
  })

  it.each([
    ['a null operation id', { operationId: null }, 'operationId'],
    ['an empty fingerprint', { fingerprint: '' }, 'fingerprint'],
    ['a misspelled member', { operationID: 'y' }, 'no member operationID'],
    ['another scope', { scope: undefined }, 'no member scope'],
    ['another token', { token: intent(6).token }, 'no member token'],
  ])('refuses an override with %s, and does not throw on the stack', async (_, given, text) => {
    const d = new SqliteDestination()
    const bound = d.guard.bind(intent(5, 'x', { scope: 's' }))
    const override = given as never
    for (const call of [
      bound.write(d.appends('x'), override),
      bound.effect(async () => 1, {}, override),
    ]) {
      expect(await failure(call)).toMatchObject({ message: expect.stringContaining(text) })
    }
    d.db.exec('BEGIN')
    expect(() => bound.within(d.db, d.appends('x'), override)).toThrow(text)
    d.db.exec('ROLLBACK')
    expect(await d.guard.inspect('job', 's')).toBeUndefined()
  })

  it('is no write intent: its operation id and scope would be lost', async () => {
    const d = new SqliteDestination()
    const bound = d.guard.bind(intent(5, 'x', { scope: 's' }))
    const call = d.guard.write(bound, d.appends('x'))
    expect(await failure(call)).toMatchObject({ message: expect.stringContaining('own verbs') })
    expect(d.log()).toEqual([])
  })

  it('hands the options of an effect on', async () => {
    let time = 0
    const { guard } = new SqliteDestination(undefined, { now: () => time })
    const bound = guard.bind(intent(5, 'x'))
    const boom = new Error('boom')
    const fails = () => Promise.reject(boom)
    expect(await failure(bound.effect(fails, { errorsMean: 'not_applied' }))).toBe(boom)
    expect(await guard.unsettled()).toEqual([])
    time = 1
    void bound.effect(() => new Promise<never>(() => {}), { deadlineMs: 30 })
    await refused(
      bound.effect(async () => 1),
      'in_flight',
      { retryAfterMs: 30 },
    )
  })
})
