import { setTimeout as sleep } from 'node:timers/promises'
import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { bearing, destination, versions } from './harness.ts'
import { effectRoute, type Handler, type Writer, writeRoute } from './routes.ts'

describe.each(versions)('%s, the verbs of a request', (_, express) => {
  it('writes without an id are as many writes', async () => {
    const bank = destination()
    const writer: Writer = async (bound, _req, res) => {
      await bound.write(bank.credit(1))
      await bound.write(bank.credit(2))
      res.end()
    }
    const { send } = writeRoute(express, writer, { requireOperationId: false }, bank)
    expect((await send(7, undefined)).status).toBe(200)
    expect(bank.credits()).toEqual([1, 2])
  })

  it('a handler that is the effect may write without an id where it has none', async () => {
    const handler: Handler = async (req, res) => {
      res.json((await fence.of(req).write(credit(2) as never)).result)
    }
    const options = { requireOperationId: false }
    const { app, fence, credit } = effectRoute(express, handler, options)
    const answer = await request(app).post('/').set(bearing(7))
    expect([answer.status, answer.body]).toEqual([200, { balance: 2 }])
  })

  it.each(['advance', 'seal'] as const)('%s accounts for a success', async (verb) => {
    const { send, guard } = writeRoute(express, async (bound, _req, res) => {
      const { sealed } = await bound[verb]()
      res.json({ sealed })
    })
    const answer = await send(7, 'op-1')
    expect([answer.status, answer.body]).toEqual([200, { sealed: verb === 'seal' }])
    expect(answer.headers['fencing-verdict']).toBe('passed;highest=7')
    expect((await guard.inspect('job'))?.sealed).toBe(verb === 'seal')
  })

  it('a seal that is refused by a newer generation has its status and verdict', async () => {
    const { send, guard } = writeRoute(express, async (bound, _req, res) => {
      await guard.advance({ jobId: 'job', generation: 8 })
      res.json(await bound.seal())
    })
    const answer = await send(7, 'op-1')
    expect([answer.status, answer.body.code]).toEqual([412, 'stale'])
    expect(answer.headers['fencing-verdict']).toBe('stale;highest=8')
    expect((await guard.inspect('job'))?.sealed).toBe(false)
  })

  it('an effect keeps to what its route says, unless it says otherwise itself', async () => {
    const options = { deadlineMs: 20, errorsMean: 'not_applied' } as const
    let release = () => {}
    const running = new Promise<void>((resolve) => {
      release = resolve
    })
    let tries = 0
    const { send, guard } = writeRoute(
      express,
      async (bound, req, res) => {
        tries += 1
        if (req.body.amount === 1) await bound.effect(() => running)
        else if (tries === 1) await bound.effect(() => Promise.reject(new Error('declined')))
        else await bound.effect(() => running, { deadlineMs: 60_000 })
        res.status(201).json({})
      },
      options,
    )
    // An error proves that nothing took place: the operation may be tried again.
    expect((await send(7, 'op-1')).status).toBe(500)
    const again = send(7, 'op-1').then((answer) => answer.status)
    const overdue = send(7, 'op-2', 1).then((answer) => answer.status)
    const states = async () => (await guard.unsettled()).map(({ status }) => status)
    while (!(await states()).includes('overdue') || tries < 3) await sleep(5)
    expect((await states()).sort()).toEqual(['in_flight', 'overdue'])
    release()
    expect([await again, await overdue]).toEqual([201, 201])
  })
})
