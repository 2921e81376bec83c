import type { PoolClient } from 'pg'
import { describe, expect, it } from 'vitest'
import { WriteGuard, type WriteIntent } from 'writefence'
import { fenceStoreLaws, leaseStoreLaws } from 'writefence/conformance'
import { describeEngine } from './engine.ts'
import { PostgresBench } from './postgres-bench.ts'

type Guard = WriteGuard<PoolClient, 'async'>

const bench = await PostgresBench.open('isolation')

const intent = (generation: number, operationId: string, leaseId = 'a'): WriteIntent => ({
  token: { jobId: 'job', generation, leaseId },
  operationId,
})

const failingEffect = (guard: Guard, write: WriteIntent) =>
  guard.effect(write, () => Promise.reject(new Error('no answer'))).catch(() => {})

const mustBeRepeated = {
  code: 'store_unavailable',
  message: expect.stringContaining('repeated from its BEGIN'),
  cause: { code: '40001' },
}

const sessions = [
  '-c default_transaction_isolation=serializable -c TimeZone=Asia/Tokyo',
  '-c default_transaction_isolation=repeatable\\ read -c TimeZone=America/Los_Angeles',
]
let pools = 0

/** A pool whose sessions differ from those of the pool before in isolation and time zone. */
function connect(more = '') {
  pools += 1
  return bench.connect({ options: `${sessions[pools % 2]} ${more}` })
}

const readOnly = '-c default_transaction_read_only=on'

describeEngine('PostgreSQL, isolation', bench.problem, () => {
  describe('R04, R113: with other defaults of isolation and time zone in each pool', () => {
    it.each(leaseStoreLaws)('lease store: $name', async (law) => {
      await bench.empty()
      await law.run({ open: async (now) => bench.leases({ now, pool: connect(readOnly) }) })
    })

    it.each(fenceStoreLaws)('fence store: $name', async (law) => {
      await bench.empty()
      const user = connect()
      await law.run({
        open: async (now) => bench.fences({ now, pool: connect(readOnly) }),
        append: (tx, text) => bench.append(tx, text),
        log: () => bench.log(),
        transaction: (body) => bench.transaction(body, { pool: user }),
      })
    })
  })

  describe.each(['REPEATABLE READ', 'SERIALIZABLE'])('within a %s transaction', (isolation) => {
    /** A transaction whose snapshot is older than what `change` does to the job. */
    async function joinAfter(change: (guard: Guard) => Promise<unknown>): Promise<unknown> {
      const guard = new WriteGuard(bench.fences())
      const joined = bench.transaction(
        async (tx) => {
          await tx.query('SELECT count(*) FROM log')
          await change(guard)
          return guard.within(tx, intent(5, 'x'), () => bench.append(tx, 'within'))
        },
        { begin: `BEGIN ISOLATION LEVEL ${isolation}` },
      )
      return joined.catch((error: unknown) => error)
    }

    it.each<[string, (guard: Guard) => Promise<unknown>]>([
      ['applied the same operation', (guard) => guard.write(intent(5, 'x'), () => 'first')],
      ['left the same operation unknown', (guard) => failingEffect(guard, intent(5, 'x'))],
      ['sealed the job', (guard) => guard.seal(intent(5, 'x').token)],
      ['advanced the fence', (guard) => guard.advance(intent(6, 'x').token)],
    ])('a snapshot from before somebody %s is refused', async (_, change) => {
      await bench.empty()
      await new WriteGuard(bench.fences()).advance(intent(5, 'x').token)
      expect(await joinAfter(change)).toMatchObject(mustBeRepeated)
      expect(await bench.log()).toEqual([])
    })

    it('so is one from before somebody resolved the same operation', async () => {
      await bench.empty()
      await failingEffect(new WriteGuard(bench.fences()), intent(5, 'x'))
      const resolve = (guard: Guard) =>
        guard.resolve({ jobId: 'job', operationId: 'x' }, { status: 'not_applied' })
      // What it sees would be refused for good: `outcome_unknown`, which is no longer true.
      expect(await joinAfter(resolve)).toMatchObject(mustBeRepeated)
    })

    it('so is one from before an older operation began, which may yet take place', async () => {
      await bench.empty()
      await new WriteGuard(bench.fences()).advance(intent(4, 'older').token)
      let settle = () => {}
      let older: Promise<unknown> | undefined
      const begin = (guard: Guard) =>
        new Promise<void>((begun) => {
          older = guard.effect(intent(4, 'older'), () => {
            begun()
            return new Promise<void>((ends) => {
              settle = ends
            })
          })
        })
      expect(await joinAfter(begin)).toMatchObject(mustBeRepeated)
      settle()
      expect(await older).toMatchObject({ status: 'applied' })
      expect(await bench.log()).toEqual([])
    })

    it('R112: so is one from before the very first fence of the job', async () => {
      await bench.empty()
      const first = (guard: Guard) => guard.write(intent(5, 'x'), () => 'first')
      expect(await joinAfter(first)).toMatchObject(mustBeRepeated)
      expect(await bench.log()).toEqual([])
    })

    it('one in which nothing has changed goes on', async () => {
      await bench.empty()
      await new WriteGuard(bench.fences()).advance(intent(5, 'x').token)
      const outcome = await joinAfter((guard) => guard.inspect('job'))
      expect(outcome).toMatchObject({ status: 'applied', highestGeneration: 5 })
      expect(await bench.log()).toEqual(['within'])
    })
  })
})
