import http from 'node:http'
import type { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { corsHeaders, fencing, fencingErrors, leaseRoutes } from 'writefence/express'
import { SqliteLeaseStore } from 'writefence/sqlite'
import { atEnd, bearing, destination, listening, versions } from './harness.ts'

interface Sent {
  readonly path?: string
  readonly headers: Record<string, string>
  readonly body?: string
}

describe.each(versions)('%s, one connection', (_, express) => {
  async function setUp() {
    const bank = destination()
    const app = express()
    app.use(leaseRoutes(new SqliteLeaseStore(bank.db), { authorize: 'none' }))
    app.use(express.text({ type: '*/*' }))
    const handler = { protect: 'handler', maxBodyBytes: 10 } as const
    app.post('/held', fencing(bank.guard, handler), (_req, res) => {
      res.status(201).send('short')
    })
    app.post('/long', fencing(bank.guard, handler), (_req, res) => {
      for (let index = 0; index < 5; index += 1) res.write('12345')
      res.end()
    })
    app.post('/forgotten', fencing(bank.guard), (_req, res) => {
      res.write('unguarded')
      res.end()
    })
    app.use(fencingErrors())
    const port = await listening(app)
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    atEnd(() => agent.destroy())
    const sockets = new Set<Socket>()
    const send = ({ path = '/held', headers, body = '' }: Sent) =>
      new Promise<readonly [status: number | undefined, text: string]>((resolve, reject) => {
        const type = { 'Content-Type': 'text/plain' }
        const sent = { port, agent, method: 'POST', path, headers: { ...type, ...headers } }
        const req = http.request(sent, (res) => {
          let text = ''
          res.setEncoding('utf8').on('data', (chunk: string) => {
            text += chunk
          })
          res.once('end', () => resolve([res.statusCode, text]))
        })
        req.once('socket', (socket) => sockets.add(socket))
        req.once('error', reject)
        req.end(body)
      })
    return { send, sockets }
  }

  it('R100: serves one request after the other, whatever became of them', async () => {
    const { send, sockets } = await setUp()
    const big = 'x'.repeat(100_000)
    const answers: (readonly [status: number | undefined, text: string])[] = []
    for (const sent of [
      { headers: bearing(7, 'a') },
      { headers: bearing(7, 'a') },
      { headers: bearing(7, 'a'), body: 'other' },
      { headers: bearing(6, 'b'), body: big },
      { path: '/long', headers: bearing(7, 'c') },
      { path: '/long', headers: bearing(7, 'c') },
      { path: '/forgotten', headers: bearing(7, 'd') },
      { path: '/leases/job/claim', headers: {}, body: big },
      { headers: bearing(7, 'e') },
    ]) {
      answers.push(await send(sent))
    }
    expect(answers.map(([status]) => status)).toEqual([201, 201, 422, 412, 200, 200, 500, 400, 201])
    expect(answers[0]).toEqual([201, 'short'])
    expect(answers[1]).toEqual([201, 'short'])
    expect(answers[4]).toEqual([200, '12345'.repeat(5)])
    expect(answers[5]).toEqual([200, ''])
    expect(answers[8]).toEqual([201, 'short'])
    expect(sockets.size).toBe(1)
  })
})

describe('R101: a call across origins', () => {
  it('may send and read what the guard looks at and sets', () => {
    const expose = ['Fencing-Verdict', 'Idempotent-Replayed', 'Retry-After']
    expect(corsHeaders).toEqual({ allow: Object.keys(bearing(7, 'op')), expose })
  })
})
