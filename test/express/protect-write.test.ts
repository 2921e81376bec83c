import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { fencing, fencingErrors } from 'writefence/express'
import { bearing, destination, versions } from './harness.ts'

describe.each(versions)("%s, protect: 'write'", (_, express) => {
  function setUp(options: Parameters<typeof fencing>[1] = {}) {
    const bank = destination()
    const fence = fencing(bank.guard, options)
    const app = express()
    app.use(express.json())
    app.post('/credits', fence, (req, res, next) => {
      fence
        .of(req)
        .write(bank.credit(req.body.amount))
        .then(({ result }) => res.status(201).json(result), next)
    })
    app.use(fencingErrors())
    return { bank, app, fence }
  }

  it('applies, replays, refuses', async () => {
    const { app, bank } = setUp()
    const send = (generation: number, id: string, amount = 5) =>
      request(app).post('/credits').set(bearing(generation, id)).send({ amount })
    const first = await send(7, 'op-1')
    expect([first.status, first.body]).toEqual([201, { balance: 5 }])
    expect(first.headers['fencing-verdict']).toBe('applied;highest=7')
    expect(first.headers['idempotent-replayed']).toBeUndefined()
    const again = await send(8, 'op-1')
    expect([again.status, again.body]).toEqual([201, { balance: 5 }])
    expect(again.headers['fencing-verdict']).toBe('replayed;highest=8')
    expect(again.headers['idempotent-replayed']).toBe('true')
    const stale = await send(7, 'op-2')
    expect(stale.status).toBe(412)
    expect(stale.body).toMatchObject({
      code: 'stale',
      operationApplied: false,
      highestGeneration: 8,
    })
    expect(bank.credits()).toEqual([5])
  })
})
