import { setTimeout as sleep } from 'node:timers/promises'
import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { NotAppliedError, WriteRefusedError } from 'writefence'
import { destination, signal, versions } from './harness.ts'
import { effectRoute, type Handler, type Options, type Writer, writeRoute } from './routes.ts'

const boom = new Error('boom')
const throws = (error: unknown) => () => Promise.reject(error)

describe.each(versions)('%s, the verdict on the answer', (_, express) => {
  /** Sends operation `op` to a handler that ends with an effect. */
  const setUp = (perform: () => Promise<unknown>, options: Options = {}) =>
    writeRoute(
      express,
      async (bound, _req, res) => {
        res.json(await bound.effect(perform))
      },
      options,
    )

  describe('of an effect that threw', () => {
    const refusal = new WriteRefusedError('stale', { jobId: 'elsewhere', generation: 3 })

    it.each<[string, () => Promise<unknown>, Options, string]>([
      ['an error', throws(boom), {}, 'outcome_unknown'],
      ['what is no error', throws(undefined), {}, 'outcome_unknown'],
      ['the refusal of another destination', throws(refusal), {}, 'outcome_unknown'],
      ['a proof', throws(new NotAppliedError()), {}, 'passed'],
      ['an error that is one', throws(boom), { errorsMean: 'not_applied' }, 'passed'],
      ['a result that cannot be spelled', async () => new Map(), {}, 'applied'],
    ])('%s says what is on record', async (_name, perform, options, word) => {
      const { send } = setUp(perform, options)
      const answer = await send(7, 'op')
      expect(answer.headers['fencing-verdict']).toBe(`${word};highest=7`)
      // A request of another kind under that id is a mismatch where there is a record.
      const again = await send(7, 'op', 6)
      expect(again.body.code).toBe(word === 'passed' ? undefined : 'mismatch')
    })

    it('a proof of a rerun says nothing of the attempt before it', async () => {
      let error: unknown = boom
      const { send } = setUp(() => Promise.reject(error), { onUnknown: 'rerun' })
      await send(7, 'op')
      error = new NotAppliedError()
      const answer = await send(7, 'op')
      expect(answer.headers['fencing-verdict']).toBe('outcome_unknown;highest=7')
    })

    it('one that an operator has settled meanwhile is not known', async () => {
      const operation = { jobId: 'job', operationId: 'op' }
      const { send, guard } = setUp(
        async () => {
          await sleep(5)
          await guard.resolve(operation, { status: 'not_applied' })
        },
        { deadlineMs: 1 },
      )
      const answer = await send(7, 'op')
      expect([answer.status, answer.headers['fencing-verdict']]).toEqual([
        500,
        'outcome_unknown;highest=7',
      ])
    })

    it('one that is caught, and run again, says how that ended', async () => {
      const { send } = writeRoute(express, async (bound, _req, res) => {
        await bound.effect(throws(boom)).catch(() => {})
        const { result } = await bound.effect(async () => 1, { onUnknown: 'rerun' })
        res.json({ result })
      })
      const answer = await send(7, 'op')
      expect([answer.status, answer.headers['fencing-verdict']]).toEqual([200, 'applied;highest=7'])
    })

    it.each<[string, (bound: Parameters<Writer>[0]) => Promise<unknown>]>([
      [
        'followed by a write',
        async (bound) => {
          await bound.effect(throws(boom)).catch(() => {})
          await bound.effect(throws(boom)).catch(() => {})
          await bound.write(() => 1, { operationId: 'other' })
        },
      ],
      [
        'beside a write',
        async (bound) => {
          await bound.write(() => 1, { operationId: 'other' })
          await bound.effect(throws(boom)).catch(() => {})
        },
      ],
    ])('one that is caught, %s, is told: that is not hidden', async (_name, writes) => {
      const { send } = writeRoute(express, async (bound, _req, res) => {
        await writes(bound)
        res.json({})
      })
      const answer = await send(7, 'op')
      expect(answer.headers['fencing-verdict']).toBe('outcome_unknown;highest=7')
    })

    it('what is to be told must be a function here too', async () => {
      const { send } = writeRoute(express, async (bound) => {
        await bound.effect(async () => 1, { onEnded: 'log' as never })
      })
      const answer = await send(7, 'op')
      expect([answer.status, answer.headers['fencing-verdict']]).toEqual([500, 'passed;highest=7'])
    })

    it('one that took place stands behind a success, whatever it threw then', async () => {
      const { send } = writeRoute(express, async (bound, _req, res) => {
        await bound.effect(async () => 1n as never).catch(() => {})
        res.json({ done: true })
      })
      const answer = await send(7, 'op')
      expect([answer.status, answer.body]).toEqual([200, { done: true }])
      expect(answer.headers['fencing-verdict']).toBe('applied;highest=7')
    })

    it('the handler hears of it too', async () => {
      const told: string[] = []
      const onEnded = (end: string) => void told.push(end)
      const { send } = writeRoute(express, async (bound) => {
        await bound.effect(throws(boom), { onEnded })
      })
      await send(7, 'op')
      expect(told).toEqual(['unknown'])
    })
  })

  describe('of a write that nobody has waited for', () => {
    type Bound = Parameters<Writer>[0]

    it.each<[string, (bound: Bound) => Promise<unknown>]>([
      ['write', (bound) => bound.write(() => 1)],
      ['effect', (bound) => bound.effect(() => new Promise((go) => setImmediate(go)))],
    ])('%s is that nobody knows', async (_name, begin) => {
      const end = signal()
      const { send } = writeRoute(express, (bound, _req, res) => {
        bound.noEffect()
        begin(bound).then(() => end.fire())
        res.status(202).json({})
      })
      const answer = await send(7, 'op')
      expect([answer.status, answer.headers['fencing-verdict']]).toEqual([
        202,
        'outcome_unknown;highest=7',
      ])
      await end.promise
    })

    it('is what it was before, once it has ended', async () => {
      const bank = destination()
      const bug = () => {
        throw boom
      }
      const writer: Writer = async (bound, _req, res) => {
        await bound.write(bug).catch(() => {})
        res.status(409).json({})
      }
      const answer = await writeRoute(express, writer, {}, bank).send(7, 'op')
      expect(answer.headers['fencing-verdict']).toBe('passed;highest=7')
    })

    it('leaves a refusal what it is: the worker has to hear it', async () => {
      const go = signal()
      const { send, guard } = writeRoute(express, async (bound) => {
        bound.effect(() => go.promise, undefined, { operationId: 'beside' }).catch(() => {})
        await guard.advance({ jobId: 'job', generation: 8 })
        await bound.write(() => 1)
      })
      const answer = await send(7, 'op')
      go.fire()
      expect([answer.status, answer.headers['fencing-verdict']]).toEqual([412, 'stale;highest=8'])
    })

    it('without a token is that nobody knows either, until it has ended', async () => {
      const options = { mode: 'once-fenced', jobId: () => 'job' } as const
      const writer: Writer = async (bound, req, res) => {
        const write = bound.write(() => 1)
        if (req.query.waits !== undefined) await write
        res.json({})
      }
      const { app } = writeRoute(express, writer, options)
      const verdict = async (path: string) =>
        (await request(app).post(path)).headers['fencing-verdict']
      expect(await verdict('/credits')).toBe('outcome_unknown')
      expect(await verdict('/credits?waits')).toBe('passed')
    })
  })

  it('of a handler whose answer is too long to wait for its end is that it came in', async () => {
    const handler: Handler = (_req, res) => {
      for (const piece of ['12345', '67890', 'end']) res.write(piece)
      res.end()
    }
    const { post } = effectRoute(express, handler, { maxBodyBytes: 6 })
    expect((await post()).headers['fencing-verdict']).toBe('passed;highest=7')
    expect((await post()).headers['fencing-verdict']).toBe('replayed;highest=7')
  })

  it('of a handler that did nothing this time is not known where an earlier run is', async () => {
    let code = 500
    const { post } = effectRoute(express, (_req, res) => res.status(code).json({}), {
      onUnknown: 'rerun',
    })
    expect((await post()).headers['fencing-verdict']).toBe('outcome_unknown;highest=7')
    code = 404
    const again = await post()
    expect([again.status, again.headers['fencing-verdict']]).toEqual([
      404,
      'outcome_unknown;highest=7',
    ])
  })
})
