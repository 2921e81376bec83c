import type { PoolClient, PoolConfig } from 'pg'
import { beforeEach, describe, expect, it } from 'vitest'
import { StoreUnavailableError, WriteGuard, type WriteIntent } from 'writefence'
import { describeEngine } from './engine.ts'
import { PostgresBench } from './postgres-bench.ts'
import type { Fate } from './tcp-proxy.ts'

const bench = await PostgresBench.open('connection')

const intent = (generation = 1, jobId = 'job'): WriteIntent => ({
  token: { jobId, generation, leaseId: 'a' },
  operationId: 'x',
})
const request = { jobId: 'job', owner: 'worker', ttlMs: 60_000, leaseId: 'mine' }

const effect = (tx: PoolClient) => bench.append(tx, 'effect')
const errorOf = (call: Promise<unknown>) =>
  call.then(
    () => expect.fail('the call succeeded'),
    (error: unknown) => error,
  )

describeEngine('PostgreSQL, connections that fail', bench.problem, () => {
  beforeEach(() => bench.empty())

  const moments: [moment: string, said: string][] = [
    ['connecting', 'application_name'],
    ['at BEGIN', 'BEGIN'],
    ['while it locks the job', 'FOR UPDATE'],
    ['while it reads the job', 'JOIN LATERAL'],
    ['before the effect', 'SAVEPOINT'],
    ['in the effect', '.log '],
    ['at COMMIT', 'COMMIT'],
  ]
  const fates: Fate[] = ['hang', 'lose_answers', 'cut', 'cut_answer']

  describe.each(fates)('when the network would %s', (fate) => {
    it.each(moments)(
      '%s, the write is unavailable and is applied once when repeated',
      async (moment, said) => {
        const { proxy, pool } = await bench.proxied()
        // A cut is noticed at once. A machine that is busy must not make it a time-out.
        const timeoutMs = fate.startsWith('cut') ? 5000 : 400
        const guard = new WriteGuard(bench.fences({ pool, timeoutMs, effectTimeoutMs: timeoutMs }))
        proxy.when(said, fate)
        expect(await errorOf(guard.write(intent(), effect))).toBeInstanceOf(StoreUnavailableError)
        proxy.resume()
        // A connection that came too late is as good as any other, and stays in the pool.
        if (moment !== 'connecting') await bench.untilGone()
        if (moment !== 'at COMMIT' || fate === 'cut') expect(await bench.log()).toEqual([])
        expect(pool.waitingCount).toBe(0)

        const patient = new WriteGuard(bench.fences({ pool }))
        expect(['applied', 'replayed']).toContain((await patient.write(intent(), effect)).status)
        expect(await bench.log()).toEqual(['effect'])
        expect(pool.idleCount).toBe(pool.totalCount)
      },
    )

    it.each(moments.slice(0, 3))(
      '%s, a claim is unavailable and is answered once when repeated',
      async (_, said) => {
        const { proxy, pool } = await bench.proxied()
        const store = bench.leases({ pool, timeoutMs: 150 })
        proxy.when(said, fate)
        expect(await errorOf(store.claim(request))).toBeInstanceOf(StoreUnavailableError)
        proxy.resume()
        const again = await bench.leases({ pool }).claim(request)
        expect(again).toMatchObject({ status: 'claimed', lease: { generation: 1 } })
      },
    )
  })

  it('a client that pipelines is closed in the middle of a query as well', async () => {
    const { proxy, pool } = await bench.proxied({ pipeline: true } as PoolConfig)
    const guard = new WriteGuard(bench.fences({ pool, timeoutMs: 150 }))
    proxy.when('FOR UPDATE', 'lose_answers')
    expect(await errorOf(guard.write(intent(), effect))).toBeInstanceOf(StoreUnavailableError)
    await bench.untilGone()
    expect(pool.totalCount).toBe(0)
  })

  describe('R115: a backend that is killed', () => {
    const kill = async (tx: PoolClient) => {
      const { rows } = await tx.query('SELECT pg_backend_pid() AS pid')
      await bench.pool.query('SELECT pg_terminate_backend($1)', [rows[0].pid])
    }
    const untilEnded = (tx: PoolClient) => new Promise((resolve) => tx.once('end', resolve))

    it.each<[string, (tx: PoolClient) => Promise<unknown>]>([
      [
        'between two statements of the effect',
        async (tx) => {
          const ended = untilEnded(tx)
          await kill(tx)
          await ended
          await effect(tx)
        },
      ],
      [
        'after the last one',
        async (tx) => {
          const ended = untilEnded(tx)
          await effect(tx)
          await kill(tx)
          await ended
        },
      ],
      [
        'during one',
        async (tx) => {
          await effect(tx)
          await tx.query('SELECT pg_terminate_backend(pg_backend_pid())')
        },
      ],
    ])('%s takes all of the write with it, and no other', async (_, dies) => {
      const pool = bench.connect({ max: 2 })
      const guard = new WriteGuard(bench.fences({ pool }))
      expect(await errorOf(guard.write(intent(), dies))).toBeInstanceOf(StoreUnavailableError)
      expect(await bench.log()).toEqual([])
      expect(await guard.inspect('job')).toBeUndefined()
      expect(await guard.write(intent(), effect)).toMatchObject({ status: 'applied' })
      expect(pool.idleCount).toBe(pool.totalCount)
    })
  })

  it('an effect that takes too long is rolled back, its late statements too', async () => {
    const guard = new WriteGuard(bench.fences({ effectTimeoutMs: 200 }))
    let late: Promise<unknown> = Promise.resolve()
    let goOn = () => {}
    const waits = new Promise<void>((resolve) => {
      goOn = resolve
    })
    const failed = errorOf(
      guard.write(intent(), (tx) => {
        late = effect(tx)
          .then(() => waits)
          .then(() => effect(tx))
        return late
      }),
    )
    expect(await failed).toMatchObject({ code: 'store_unavailable', message: /within 200 ms/ })
    goOn()
    await expect(late).rejects.toThrow()
    expect(await guard.write(intent(), effect)).toMatchObject({ status: 'applied' })
    expect(await bench.log()).toEqual(['effect'])
  })

  it('a statement of its own may take longer than the store may, within its time-out', async () => {
    const guard = new WriteGuard(bench.fences({ timeoutMs: 500 }))
    const { status } = await guard.write(intent(), async (tx) => {
      await tx.query('SELECT pg_sleep(0.7)')
      return effect(tx)
    })
    expect(status).toBe('applied')
  })

  it('and leaves the whole of its time to the commit', async () => {
    await bench.pool.query(`CREATE TABLE late (id bigint);
      CREATE FUNCTION take_time() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep(0.1); RETURN new; END $$;
      CREATE CONSTRAINT TRIGGER takes_time AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION take_time()`)
    const guard = new WriteGuard(bench.fences({ timeoutMs: 1000 }))
    const { status } = await guard.write(intent(), async (tx) => {
      await tx.query('SELECT pg_sleep(1)')
      await tx.query(`INSERT INTO ${bench.schema}.late VALUES (1)`)
    })
    expect(status).toBe('applied')
  })

  it.each<[string, object, object]>([
    ['a port where nobody listens', { port: 9 }, { code: 'ECONNREFUSED' }],
    ['a database that there is not', { database: 'nowhere' }, { code: '3D000' }],
    ['a role that there is not', { user: 'nobody_of_that_name' }, { code: '28000' }],
  ])('%s is unavailable, with the cause', async (_, config, cause) => {
    const guard = new WriteGuard(bench.fences({ pool: bench.connect(config) }))
    const store = bench.leases({ pool: bench.connect(config) })
    const unavailable = { code: 'store_unavailable', message: /^PostgreSQL: ./, cause }
    expect(await errorOf(guard.write(intent(), effect))).toMatchObject(unavailable)
    expect(await errorOf(guard.inspect('job'))).toMatchObject(unavailable)
    expect(await errorOf(store.claim(request))).toMatchObject(unavailable)
  })

  it('a closed store refuses whatever comes, and leaves the pool open', async () => {
    const pool = bench.connect({ max: 1 })
    const taken = await pool.connect()
    const [fences, leases] = [bench.fences({ pool }), bench.leases({ pool })]
    await fences.close()
    await leases.close()
    const closed = { code: 'store_unavailable', message: 'the store is closed' }
    const guard = new WriteGuard(fences)
    expect(await errorOf(guard.write(intent(), effect))).toMatchObject(closed)
    expect(await errorOf(guard.inspect('job'))).toMatchObject(closed)
    expect(await errorOf(leases.claim(request))).toMatchObject(closed)
    await bench.transaction(async (tx) => {
      expect(await errorOf(guard.within(tx, intent(), effect))).toMatchObject(closed)
    })
    taken.release()
    expect((await pool.query('SELECT 1')).rows).toHaveLength(1)
  })

  it('a call that waits for a connection when its store is closed is withdrawn', async () => {
    const pool = bench.connect({ max: 1 })
    const store = bench.fences({ pool })
    const taken = await pool.connect()
    const waiting = errorOf(new WriteGuard(store).write(intent(), effect))
    await store.close()
    taken.release()
    expect(await waiting).toMatchObject({ message: 'the store is closed' })
    expect(await bench.log()).toEqual([])
    expect([pool.idleCount, pool.waitingCount]).toEqual([1, 0])
  })

  it('what listens to a connection while it is used does so no longer', async () => {
    const pool = bench.connect({ max: 1 })
    const client = await pool.connect()
    client.release()
    const before = client.listenerCount('error')
    const guard = new WriteGuard(bench.fences({ pool }))
    for (let generation = 1; generation <= 3; generation += 1) {
      await guard.write(intent(generation), effect)
    }
    expect(client.listenerCount('error')).toBe(before)
  })

  it('R128: a pool that is ended is unavailable', async () => {
    const pool = bench.connect()
    const store = bench.leases({ pool })
    const { lease } = (await store.claim(request)) as never
    await pool.end()
    expect(await errorOf(store.release(lease))).toBeInstanceOf(StoreUnavailableError)
  })

  describe('R116: after a thousand failing calls the pool is as healthy as before', () => {
    const thousand = Array.from({ length: 1000 })
    const isHealthy = async (guard: WriteGuard<PoolClient, 'async'>) => {
      const outcomes = thousand.slice(0, 50).map((_, n) => guard.write(intent(n + 1), effect))
      for (const outcome of await Promise.allSettled(outcomes)) {
        if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'stale' })
      }
      expect(await bench.log()).toEqual(['effect'])
    }

    it('effects that throw', { timeout: 60_000 }, async () => {
      const pool = bench.connect()
      const guard = new WriteGuard(bench.fences({ pool, timeoutMs: 60_000 }))
      const throws = (tx: PoolClient) => tx.query('SELECT 1/0')
      const failures = thousand.map(() => errorOf(guard.write(intent(), throws)))
      for (const error of await Promise.all(failures))
        expect(error).toMatchObject({ code: '22012' })
      expect(pool.totalCount).toBeLessThanOrEqual(4)
      expect([pool.idleCount, pool.waitingCount]).toEqual([pool.totalCount, 0])
      await isHealthy(guard)
    })

    it('connections that die at BEGIN', { timeout: 60_000 }, async () => {
      const { proxy, pool } = await bench.proxied()
      const guard = new WriteGuard(bench.fences({ pool, timeoutMs: 60_000 }))
      proxy.when('BEGIN', 'cut')
      const failures = thousand.map(() => errorOf(guard.write(intent(), effect)))
      for (const error of await Promise.all(failures)) {
        expect(error).toBeInstanceOf(StoreUnavailableError)
      }
      expect([pool.totalCount, pool.waitingCount]).toEqual([0, 0])
      proxy.resume()
      await isHealthy(guard)
    })

    it('calls that found no connection free', async () => {
      const pool = bench.connect({ max: 1 })
      const guard = new WriteGuard(bench.fences({ pool }))
      const hurried = new WriteGuard(bench.fences({ pool, timeoutMs: 100 }))
      const taken = await pool.connect()
      // Each of its own job: those of one would wait for their turn, not for a connection.
      const failures = thousand.map((_, n) => errorOf(hurried.write(intent(1, `${n}`), effect)))
      for (const error of await Promise.all(failures)) {
        expect(error).toMatchObject({
          code: 'store_unavailable',
          message: /no connection within 100 ms/,
        })
      }
      taken.release()
      await isHealthy(guard)
      expect([pool.idleCount, pool.waitingCount]).toEqual([1, 0])
    })
  })
})
