import { setTimeout } from 'node:timers/promises'
import { beforeEach, expect, it } from 'vitest'
import { WriteGuard, type WriteIntent, WriteRefusedError } from 'writefence'
import { type RedisFenceStore, RedisReplyError, type RedisTransaction } from 'writefence/redis'
import { describeEngine } from './engine.ts'
import { RedisBench } from './redis-bench.ts'

const bench = await RedisBench.open()
const { redis } = bench

function intent(generation: number, operationId?: string, leaseId = 'a'): WriteIntent {
  return { token: { jobId: 'job', generation, leaseId }, operationId }
}

describeEngine('writes on Redis', bench.problem, () => {
  let store: RedisFenceStore
  let guard: WriteGuard<RedisTransaction, 'async'>
  const balance = bench.key('balance')

  beforeEach(async () => {
    store = await bench.fences()
    guard = new WriteGuard(store)
  })

  /** Adds to what it read: a lost update where nobody checks the read again. */
  async function credit(tx: RedisTransaction, amount: number): Promise<number> {
    const now = Number((await tx.read('GET', balance)) ?? 0) + amount
    tx.call('SET', balance, now)
    return now
  }

  it('nothing is changed before the commit, and all of it then', async () => {
    await guard.write(intent(1, 'x'), async (tx) => {
      tx.call('SET', balance, 5)
      tx.call('RPUSH', bench.key('log'), 'five', Buffer.from([0xff, 0x00]))
      expect(await redis.exists(balance, bench.key('log'))).toBe(0)
    })
    expect(await redis.get(balance)).toBe('5')
    expect(await redis.lrangeBuffer(bench.key('log'), 1, 1)).toEqual([Buffer.from([0xff, 0x00])])
  })

  it('a write is judged again where a newer generation came while its callback ran', async () => {
    const other = new WriteGuard(await bench.fences())
    let runs = 0
    const late = guard.write(intent(1, 'x'), async (tx) => {
      runs += 1
      await bench.append(tx, 'of 1')
      await other.write(intent(2, 'y', 'b'), (inner) => bench.append(inner, 'of 2'))
    })
    await expect(late).rejects.toMatchObject({ code: 'stale', highestGeneration: 2 })
    expect(runs).toBe(1)
    expect(await bench.log()).toEqual(['of 2'])
  })

  it('a callback may take longer than a round trip may, and runs once', async () => {
    const timeoutMs = 1000
    const impatient = new WriteGuard(await bench.fences({ timeoutMs }))
    let runs = 0
    await impatient.write(intent(1, 'x'), async (tx) => {
      runs += 1
      await setTimeout(timeoutMs)
      await bench.append(tx, 'done')
    })
    expect([runs, await bench.log()]).toEqual([1, ['done']])
  })

  it('a callback runs again where what it read has changed before the commit', async () => {
    const seen: unknown[] = []
    const outcome = await guard.write(intent(1, 'x'), async (tx) => {
      const now = await credit(tx, 5)
      seen.push(now)
      if (seen.length === 1) await redis.incrby(balance, 100)
      return now
    })
    expect(seen).toEqual([5, 105])
    expect(outcome).toMatchObject({ status: 'applied', result: 105 })
    expect(await redis.get(balance)).toBe('105')
  })

  it('no update is lost among writes of many jobs to one key', async () => {
    const guards = [guard, new WriteGuard(await bench.fences({ driver: 'node-redis' }))]
    await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        guards[i % 2]?.write({ token: { jobId: `job ${i}`, generation: 1 } }, (tx) =>
          credit(tx, 1),
        ),
      ),
    )
    expect(await redis.get(balance)).toBe('40')
  })

  it('an error counts only if what led to it still holds at the commit', async () => {
    await redis.set(balance, 1)
    await guard.advance(intent(1).token)
    let runs = 0
    const outcome = await guard.write(intent(1, 'x'), async (tx) => {
      runs += 1
      if (Number(await tx.read('GET', balance)) >= 10) return 'enough'
      await redis.set(balance, 10)
      throw new Error('too little')
    })
    expect([runs, outcome.result]).toEqual([2, 'enough'])
  })

  it('where the first command fails nothing has happened, and it may be tried again', async () => {
    await redis.set(balance, 'not a number')
    const failed = guard.write(intent(5, 'x'), (tx) => {
      tx.call('INCRBY', balance, 5)
      tx.call('RPUSH', bench.key('log'), 'after')
    })
    const error = await failed.catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(RedisReplyError)
    expect(error).toMatchObject({ command: 'INCRBY', message: expect.stringContaining('integer') })
    expect(await bench.log()).toEqual([])
    // The fence has moved all the same (rule 12).
    const stale = guard.write(intent(4, 'y'), () => {})
    await expect(stale).rejects.toMatchObject({ code: 'stale', highestGeneration: 5 })
    await redis.del(balance)
    const again = await guard.write(intent(5, 'x'), (tx) => tx.call('INCRBY', balance, 5))
    expect(again.status).toBe('applied')
  })

  it('where a later command fails the outcome is unknown until it is resolved', async () => {
    await redis.set(balance, 'not a number')
    const half = (tx: RedisTransaction) => {
      tx.call('RPUSH', bench.key('log'), 'before')
      tx.call('INCRBY', balance, 5)
      tx.call('RPUSH', bench.key('log'), 'after')
    }
    const error = await guard.write(intent(5, 'x'), half).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(WriteRefusedError)
    expect(error).toMatchObject({
      code: 'outcome_unknown',
      jobId: 'job',
      generation: 5,
      operationId: 'x',
      highestGeneration: 5,
      cause: { command: 'INCRBY' },
    })
    expect(await bench.log()).toEqual(['before'])
    // It never runs a second time by itself, under this generation or a newer one.
    for (const generation of [5, 6]) {
      const again = guard.write(intent(generation, 'x'), half)
      await expect(again).rejects.toMatchObject({ code: 'outcome_unknown' })
    }
    expect(await guard.unsettled()).toMatchObject([{ operationId: 'x', status: 'unknown' }])
    // What ended holds nobody else back (rule 14).
    await guard.write(intent(6, 'y'), (tx) => bench.append(tx, 'other'))
    await guard.resolve({ jobId: 'job', operationId: 'x' }, { status: 'applied', result: 'mended' })
    const replayed = await guard.write(intent(6, 'x'), half)
    expect(replayed).toMatchObject({ status: 'replayed', result: 'mended' })
    expect(await bench.log()).toEqual(['before', 'other'])
  })

  it('a partial failure without an operation id is told, and not recorded', async () => {
    await redis.set(balance, 'not a number')
    const half = guard.write(intent(1), (tx) => {
      tx.call('RPUSH', bench.key('log'), 'before')
      tx.call('INCRBY', balance, 5)
    })
    await expect(half).rejects.toMatchObject({ code: 'outcome_unknown', generation: 1 })
    expect(await guard.unsettled()).toEqual([])
  })

  it('a read that fails, or would write, throws in the callback and changes nothing', async () => {
    await redis.set(balance, 5)
    for (const command of [['LRANGE', balance, 0, -1], ['INCR', balance], ['NOSUCH']] as const) {
      const [name, ...args] = command
      const failed = guard.write(intent(1, 'x'), (tx) => tx.read(name, ...args))
      const error = await failed.catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(RedisReplyError)
      expect(error).toMatchObject({ command: name })
    }
    expect(await redis.get(balance)).toBe('5')
  })

  it('replies come as they are, nested ones and missing ones too', async () => {
    await redis.hset(bench.key('hash'), 'ключ', 'Wert')
    await redis.zadd(bench.key('zset'), 1.5, 'm')
    const { result } = await guard.write(intent(1, 'x'), async (tx) => [
      await tx.read('HGETALL', bench.key('hash')),
      await tx.read('ZRANGE', bench.key('zset'), 0, -1, 'WITHSCORES'),
      await tx.read('MGET', bench.key('none'), bench.key('nothing')),
      await tx.read('GET', bench.key('none')),
      await tx.read('TYPE', bench.key('hash')),
      await tx.read('HLEN', bench.key('hash')),
    ])
    expect(result).toEqual([['ключ', 'Wert'], ['m', '1.5'], [null, null], null, 'hash', 1])
  })

  it('what is asked of a transaction after its callback is refused', async () => {
    let kept: RedisTransaction | undefined
    await guard.write(intent(1, 'x'), (tx) => {
      kept = tx
    })
    expect(() => kept?.call('SET', balance, 1)).toThrow(/callback has ended/)
    await expect(kept?.read('GET', balance)).rejects.toThrow(/callback has ended/)
    expect(await redis.exists(balance)).toBe(0)
  })

  it('a command that is none, or that would pull the ground away, is refused at once', async () => {
    const bad: [string, ...unknown[]][] = [
      ['', 'key'],
      ['SET key value'],
      ['SET', 'key', undefined],
      ['SET', 'key', Number.NaN],
      ['SET', 'key', { value: 1 }],
      ['select', 1],
      ['FLUSHALL'],
    ]
    await guard.write(intent(1, 'x'), (tx) => {
      for (const [name, ...args] of bad) {
        expect(() => tx.call(name, ...(args as string[])), name).toThrow(TypeError)
      }
      expect(() => tx.call('DEL', ...Array(4001).fill('key'))).toThrow(RangeError)
      tx.call('DEL', ...Array(4000).fill(balance))
    })
  })

  it('a buffer that the callback writes to later is committed as it was', async () => {
    const value = Buffer.from('as it was')
    await guard.write(intent(1, 'x'), (tx) => {
      tx.call('SET', balance, value)
      value.fill('!')
    })
    expect(await redis.get(balance)).toBe('as it was')
  })

  it('the hash tag of the store begins the keys of the effects', async () => {
    const { result } = await guard.write(intent(1, 'x'), (tx) => tx.hashTag)
    expect(result).toBe(bench.key(''))
  })

  it('within is refused with advice: Redis has nothing that could be joined', async () => {
    const joined = guard.within({} as RedisTransaction, intent(1, 'x'), () => {})
    await expect(joined).rejects.toThrow(TypeError)
    await expect(joined).rejects.toThrow(/guard.write/)
    expect(await guard.inspect('job')).toBeUndefined()
  })

  it('writes of one job in a row hand their turn on, whatever one of them throws', async () => {
    const calls = Array.from({ length: 50 }, (_, i) =>
      guard.write(intent(1, `op ${i}`), async (tx) => {
        if (i % 10 === 3) throw new Error('boom')
        await bench.append(tx, String(i))
      }),
    )
    const ended = await Promise.allSettled(calls)
    expect(ended.filter((one) => one.status === 'rejected')).toHaveLength(5)
    const expected = Array.from({ length: 50 }, (_, i) => i).filter((i) => i % 10 !== 3)
    expect(await bench.log()).toEqual(expected.map(String))
  })

  it('many stores that write one job in hot loops all get through', async () => {
    const guards = await Promise.all(
      Array.from({ length: 6 }, async () => new WriteGuard(await bench.fences())),
    )
    await Promise.all(
      guards.map(async (each, who) => {
        for (let i = 0; i < 50; i += 1) {
          await each.write(intent(1, `${who} ${i}`), (tx) => tx.call('INCR', balance))
        }
      }),
    )
    expect(await redis.get(balance)).toBe('300')
  })
})
