import { describe, expect, it } from 'vitest'
import { failure, intent } from '../../src/conformance/fence-destination.ts'
import { published, SqliteDestination } from '../support/sqlite-destination.ts'

const boom = new Error('boom')
const hang = () => new Promise<never>(() => {})
const job = { scope: '', jobId: 'job' }

/** How often each decision was published. */
function counted(events: readonly { decision: string }[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { decision } of events) counts[decision] = (counts[decision] ?? 0) + 1
  return counts
}

describe('R122: what subscribers count', () => {
  it('five stale and five duplicate writes, and what is in flight', async () => {
    const d = new SqliteDestination()
    await d.write(intent(5, 'x'))
    const decisions = published('decision')
    for (let i = 0; i < 5; i += 1) {
      await failure(d.write(intent(4, `late ${i}`)))
      await d.write(intent(5, 'x'))
    }
    void d.guard.effect(intent(5, 'running'), hang)
    for (let i = 0; i < 3; i += 1) await failure(d.guard.effect(intent(5, 'running'), hang))
    expect(counted(decisions)).toEqual({ stale: 5, replayed: 5, in_flight: 3 })
  })

  it('a decision has its job, its token, its operation and the fence, and no lease', async () => {
    const d = new SqliteDestination()
    const decisions = published('decision')
    await d.write(intent(5, 'x', { leaseId: 'secret', scope: 's' }))
    expect(decisions).toEqual([
      {
        verb: 'write',
        decision: 'applied',
        scope: 's',
        jobId: 'job',
        generation: 5,
        operationId: 'x',
        highestGeneration: 5,
        tookOverFrom: undefined,
        provisional: undefined,
        reportOnly: undefined,
      },
    ])
    expect(JSON.stringify(decisions)).not.toContain('secret')
  })

  it('which verb it was that decided', async () => {
    const d = new SqliteDestination()
    const decisions = published('decision')
    await d.guard.write(intent(1), d.appends('a'))
    d.guard.writeSync(intent(1), d.appends('b'))
    await d.guard.effect(intent(1), async () => 1)
    await d.guard.advance(intent(2).token)
    await d.guard.seal(intent(2).token)
    expect(decisions.map(({ verb, decision }) => [verb, decision])).toEqual([
      ['write', 'applied'],
      ['write', 'applied'],
      ['effect', 'applied'],
      ['advance', 'advanced'],
      ['seal', 'sealed_now'],
    ])
  })

  it('a take-over, by whichever verb comes first, once', async () => {
    const d = new SqliteDestination()
    const decisions = published('decision')
    await d.write(intent(1))
    await d.write(intent(3))
    await d.write(intent(3))
    await d.guard.advance(intent(5).token)
    await d.guard.advance(intent(5).token)
    await d.guard.effect(intent(6, 'x'), async () => 1)
    await d.guard.seal(intent(7).token)
    const from = decisions.map(({ decision, tookOverFrom }) => [decision, tookOverFrom])
    expect(from).toEqual([
      ['applied', undefined],
      ['applied', 1],
      ['applied', undefined],
      ['advanced', 3],
      ['advanced', undefined],
      ['applied', 5],
      ['sealed_now', 6],
    ])
  })

  it('a take-over that is refused has taken over all the same', async () => {
    const d = new SqliteDestination()
    await d.guard.seal(intent(1).token)
    const decisions = published('decision')
    await failure(d.write(intent(2)))
    expect(decisions).toMatchObject([{ decision: 'sealed', tookOverFrom: 1 }])
  })

  it('an effect that throws has failed, for every verb', async () => {
    const d = new SqliteDestination()
    const decisions = published('decision')
    const throws = () => {
      throw boom
    }
    await failure(d.guard.write(intent(1, 'x'), throws))
    await failure(d.guard.effect(intent(1, 'y'), throws))
    d.db.exec('BEGIN')
    expect(() => d.guard.within(d.db, intent(1, 'z'), throws)).toThrow(boom)
    d.db.exec('COMMIT')
    const failed = decisions.map(({ verb, decision }) => [verb, decision])
    expect(failed).toEqual([
      ['write', 'failed'],
      ['effect', 'failed'],
      ['within', 'failed'],
    ])
  })

  it('R119: a conflict is a fault too, for every verb that meets it', async () => {
    const d = new SqliteDestination()
    await d.write(intent(5, 'x'))
    const faults = published('fault')
    const decisions = published('decision')
    const other = intent(5, 'y', { leaseId: 'b' })
    await failure(d.write(other))
    await failure(d.guard.effect(other, hang))
    await failure(d.guard.advance(other.token))
    await failure(d.guard.seal(other.token))
    d.db.exec('BEGIN')
    expect(() => d.guard.within(d.db, other, d.appends('y'))).toThrow()
    d.db.exec('COMMIT')
    const fault = { fault: 'conflict', ...job, generation: 5 }
    expect(faults).toMatchObject([fault, fault, fault, fault, fault])
    expect(counted(decisions)).toEqual({ conflict: 5 })
  })

  it('what is merely stale is no fault', async () => {
    const d = new SqliteDestination()
    await d.write(intent(5))
    const faults = published('fault')
    const decisions = published('decision')
    await failure(d.write(intent(4)))
    await failure(d.guard.advance(intent(4).token))
    expect(faults).toEqual([])
    expect(decisions).toMatchObject([{ decision: 'stale' }, { decision: 'stale', verb: 'advance' }])
  })

  it('a late settle, and one that comes too late', async () => {
    let time = 0
    const d = new SqliteDestination(undefined, { now: () => time })
    const faults = published('fault')
    const late = d.guard.effect(
      intent(1, 'late'),
      async () => {
        time += 10
        return 'r'
      },
      { deadlineMs: 10 },
    )
    expect((await late).status).toBe('applied')
    const superseded = d.guard.effect(
      intent(1, 'lost'),
      async () => {
        time += 10
        await d.guard.resolve({ jobId: 'job', operationId: 'lost' }, { status: 'not_applied' })
      },
      { deadlineMs: 10 },
    )
    expect(await failure(superseded)).toMatchObject({
      code: 'attempt_superseded',
      jobId: 'job',
      operationId: 'lost',
    })
    expect(faults).toMatchObject([
      { fault: 'settled_late', ...job, generation: 1, operationId: 'late' },
      { fault: 'attempt_superseded', ...job, generation: 1, operationId: 'lost' },
    ])
  })

  it('a settle in time is no fault', async () => {
    const faults = published('fault')
    await new SqliteDestination().guard.effect(intent(1, 'x'), async () => 1)
    expect(faults).toEqual([])
  })

  it('what operators do, where it has changed something', async () => {
    const d = new SqliteDestination()
    await failure(d.guard.effect(intent(1, 'x'), () => Promise.reject(boom)))
    const decisions = published('decision')
    const operation = { jobId: 'job', operationId: 'x' }
    const changed = [
      { verb: 'resolve', decision: 'resolved', ...job, operationId: 'x' },
      { verb: 'reopen', decision: 'reopened', ...job, generation: 2 },
    ]
    for (let i = 0; i < 2; i += 1) {
      await d.guard.resolve(operation, { status: 'applied', result: 1 })
      await d.guard.reopen('job')
      expect(decisions).toEqual(changed)
    }
  })

  it('a decision is published once it is durable', async () => {
    const d = new SqliteDestination()
    const decisions = published('decision')
    const call = d.write(intent(1, 'x'))
    await new Promise((resolve) => process.nextTick(resolve))
    expect(decisions).toEqual([])
    await call
    expect(decisions).toHaveLength(1)
  })
})
