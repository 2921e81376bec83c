import { createServer } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { StoreUnavailableError, WriteGuard, type WriteIntent } from 'writefence'
import { RedisFenceStore, RedisLeaseStore, type RedisTransaction } from 'writefence/redis'
import { describeEngine, problemOf } from './engine.ts'
import { clientOf } from './redis-bench.ts'
import { RedisServer } from './redis-server.ts'
import { TcpProxy } from './tcp-proxy.ts'

const problem = await problemOf(() => RedisServer.version())

function storesOn({ url }: { url: string }) {
  const fences = new RedisFenceStore(clientOf('ioredis', url), { timeoutMs: 2000 })
  const leases = new RedisLeaseStore(clientOf('node-redis', url), { timeoutMs: 2000 })
  onTestFinished(async () => void (await Promise.all([fences.close(), leases.close()])))
  const setUp = () => Promise.all([fences.createSchema(), leases.createSchema()])
  return { fences, leases, guard: new WriteGuard(fences), setUp }
}

function intent(generation: number, operationId?: string, leaseId = 'a'): WriteIntent {
  return { token: { jobId: 'job', generation, leaseId }, operationId }
}

const append = (text: string) => (tx: RedisTransaction) => tx.call('RPUSH', 'log', text)

/** The process warnings from here on. */
function warnings(): Error[] {
  const seen: Error[] = []
  const keep = (warning: Error) => seen.push(warning)
  process.on('warning', keep)
  onTestFinished(() => void process.off('warning', keep))
  return seen
}

describeEngine('a Redis that loses what it has acknowledged', problem, () => {
  it('after a flush all is refused until somebody sets up again', async () => {
    const server = await RedisServer.start()
    const { guard, leases, setUp } = storesOn(server)
    await setUp()
    await guard.write(intent(5), append('of 5'))
    await server.redis.flushall()

    const stale = await guard.write(intent(4), append('of 4')).catch((error: unknown) => error)
    expect(stale).toBeInstanceOf(StoreUnavailableError)
    expect(stale).toMatchObject({ message: expect.stringContaining('createSchema()') })
    const claim = leases.claim({ jobId: 'job', owner: 'w', ttlMs: 1000 })
    await expect(claim).rejects.toThrow(/flushed or lost/)
    expect(await server.redis.keys('*')).toEqual([])

    await setUp()
    await leases.raise('job', 5)
    const again = await leases.claim({ jobId: 'job', owner: 'w', ttlMs: 1000 })
    expect(again).toMatchObject({ status: 'claimed', lease: { generation: 6 } })
  })

  it('a flush between the check and the commit changes nothing', async () => {
    const server = await RedisServer.start()
    const { guard, setUp } = storesOn(server)
    await setUp()
    const write = guard.write(intent(5), async (tx) => {
      append('of 5')(tx)
      await server.redis.flushall()
    })
    await expect(write).rejects.toBeInstanceOf(StoreUnavailableError)
    expect(await server.redis.keys('*')).toEqual([])
  })

  it('R121: a restored lease store is found out at the destination until raised', async () => {
    const [issuer, destination] = await Promise.all([RedisServer.start(), RedisServer.start()])
    const { leases } = storesOn(issuer)
    const { fences, guard } = storesOn(destination)
    await Promise.all([leases.createSchema(), fences.createSchema()])
    const next = async () => {
      const answer = await leases.claim({ jobId: 'job', owner: 'w', ttlMs: 60_000 })
      if (answer.status !== 'claimed') throw new Error(answer.status)
      await leases.release(answer.lease)
      return answer.lease
    }
    await leases.raise('job', 4)
    await guard.write({ token: await next() }, append('of 5'))
    await issuer.snapshot()
    await guard.write({ token: await next() }, append('of 6'))
    await guard.write({ token: await next() }, append('of 7'))
    await issuer.restore()

    const refused = (token: WriteIntent['token']) => guard.write({ token }, append('twice'))
    await expect(refused(await next())).rejects.toMatchObject({ code: 'stale', generation: 6 })
    await expect(refused(await next())).rejects.toMatchObject({ code: 'conflict', generation: 7 })
    await leases.raise('job', 100)
    await guard.write({ token: await next() }, append('of 101'))
    expect(await destination.redis.lrange('log', 0, -1)).toEqual(['of 5', 'of 6', 'of 7', 'of 101'])
  })

  it('fences that are restored are restored together with the effects they guarded', async () => {
    const server = await RedisServer.start()
    const { guard, setUp } = storesOn(server)
    await setUp()
    await guard.write(intent(5, 'x'), append('x'))
    await server.snapshot()
    await guard.write(intent(7, 'y'), append('y'))
    await server.restore()
    // What it said of 7 is gone with what 7 did: this is the loss that the docs warn of.
    expect((await guard.inspect('job'))?.highestGeneration).toBe(5)
    expect((await guard.write(intent(7, 'x'), append('twice'))).status).toBe('replayed')
    expect((await guard.write(intent(7, 'y'), append('y'))).status).toBe('applied')
    expect(await server.redis.lrange('log', 0, -1)).toEqual(['x', 'y'])
  })

  it('with appendfsync always a killed server keeps effects with their records', async () => {
    const server = await RedisServer.start('--appendonly', 'yes', '--appendfsync', 'always')
    const { guard, setUp } = storesOn(server)
    await setUp()
    const acknowledged: string[] = []
    let killed: Promise<void> | undefined
    const writes = Array.from({ length: 400 }, async (_, i) => {
      const jobId = `job ${i % 40}`
      const write = { token: { jobId, generation: 1 + i }, operationId: `op ${i}` }
      await guard.write(write, (tx) => {
        tx.call('RPUSH', 'log', `op ${i}`)
        tx.call('INCR', 'count')
      })
      acknowledged.push(`op ${i}`)
      if (acknowledged.length === 150) killed = server.kill()
    })
    const ended = await Promise.allSettled(writes)
    await killed
    expect(ended.filter((one) => one.status === 'rejected').length).toBeGreaterThan(0)
    await server.restart()

    const log = await server.redis.lrange('log', 0, -1)
    expect(log).toEqual(expect.arrayContaining(acknowledged))
    expect(await server.redis.get('count')).toBe(String(log.length))
    const recorded = await server.redis.zcard('{writefence}:applied')
    expect(recorded).toBe(log.length)
    expect(new Set(log).size).toBe(log.length)
  })

  it('a server that would evict fences is refused, another policy is not', async () => {
    const server = await RedisServer.start('--maxmemory', '100mb')
    for (const policy of ['allkeys-lru', 'allkeys-lfu', 'allkeys-random']) {
      await server.redis.config('SET', 'maxmemory-policy', policy)
      for (const one of await Promise.allSettled([storesOn(server).setUp()])) {
        const told = expect.stringContaining(policy)
        expect(one).toMatchObject({ status: 'rejected', reason: { message: told } })
      }
    }
    for (const policy of ['volatile-lru', 'volatile-ttl', 'noeviction']) {
      await server.redis.config('SET', 'maxmemory-policy', policy)
      await storesOn(server).setUp()
    }
  })

  it.each([
    ['OOM', ['maxmemory', '1'], ['maxmemory', '0']],
    ['NOREPLICAS', ['min-replicas-to-write', '1'], ['min-replicas-to-write', '0']],
  ] as const)('a server that says %s takes all of a write or nothing', async (code, bad, good) => {
    const server = await RedisServer.start()
    const { guard, leases, setUp } = storesOn(server)
    await setUp()
    await guard.write(intent(1, 'x'), append('x'))
    await server.redis.config('SET', ...bad)
    const write = guard.write(intent(2, 'y'), async (tx) => append('y')(tx))
    await expect(write).rejects.toBeInstanceOf(StoreUnavailableError)
    await expect(write).rejects.toThrow(code)
    const claim = leases.claim({ jobId: 'job', owner: 'w', ttlMs: 1000 })
    await expect(claim).rejects.toThrow(code)
    await server.redis.config('SET', ...good)
    expect((await guard.inspect('job'))?.highestGeneration).toBe(1)
    expect(await server.redis.lrange('log', 0, -1)).toEqual(['x'])
    expect((await guard.write(intent(2, 'y'), append('y'))).status).toBe('applied')
  })

  it('a master that was made a replica refuses all, reads too, and is asked for anew', async () => {
    const server = await RedisServer.start()
    const proxy = await TcpProxy.to('127.0.0.1', server.port)
    onTestFinished(() => proxy.close())
    const { guard, fences } = storesOn({ url: `redis://127.0.0.1:${proxy.port}` })
    await fences.createSchema()
    await server.redis.replicaof('127.0.0.1', 1)
    await expect(guard.write(intent(1), append('x'))).rejects.toThrow('READONLY')
    // Behind one name there may be another server by now.
    await expect.poll(() => proxy.open).toBe(0)
    await expect(guard.judge(intent(1))).rejects.toThrow('READONLY')
    await server.redis.call('REPLICAOF', 'NO', 'ONE')
    expect((await guard.write(intent(1), append('x'))).status).toBe('applied')
    expect(proxy.accepted).toBe(3)
  })

  it('a server without an append-only file gets a process warning with a code, once', async () => {
    const seen = warnings()
    const server = await RedisServer.start()
    const options = { prefix: `warned-${server.port}` }
    const stores = [
      new RedisFenceStore(clientOf('ioredis', server.url), options),
      new RedisLeaseStore(clientOf('ioredis', server.url), options),
    ]
    onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))))
    for (const store of stores) await store.createSchema()
    await expect.poll(() => seen.length).toBe(1)
    expect(seen[0]).toMatchObject({ name: 'WritefenceWarning', code: 'WRITEFENCE_DURABILITY' })
  })

  it('a server with one gets none', async () => {
    const seen = warnings()
    const server = await RedisServer.start('--appendonly', 'yes')
    const options = { prefix: `quiet-${server.port}` }
    const store = new RedisFenceStore(clientOf('ioredis', server.url), options)
    onTestFinished(() => store.close())
    await store.createSchema()
    await new Promise((resolve) => setImmediate(resolve))
    expect(seen).toEqual([])
  })
})

describeEngine('the set-up of a prefix on Redis', problem, () => {
  it('R107: may be done by many at once, and again', async () => {
    const server = await RedisServer.start()
    await Promise.all(Array.from({ length: 8 }, () => storesOn(server).setUp()))
    const { guard, setUp } = storesOn(server)
    await guard.write(intent(1, 'x'), append('x'))
    await setUp()
    expect((await guard.write(intent(1, 'x'), append('x'))).status).toBe('replayed')
  })

  it.each([
    ['2', /upgrade writefence/],
    ['0', /migrate/],
  ])('keys of version %s are refused, and left alone', async (version, advice) => {
    const server = await RedisServer.start()
    await server.redis.set('{writefence}:schema:fence', version)
    const { fences, guard } = storesOn(server)
    await expect(fences.createSchema()).rejects.toThrow(advice)
    await expect(guard.write(intent(1), append('x'))).rejects.toThrow(advice)
    await expect(guard.judge(intent(1))).rejects.toBeInstanceOf(StoreUnavailableError)
    expect(await server.redis.keys('*')).toEqual(['{writefence}:schema:fence'])
  })

  it('a user who may not ask for INFO is trusted', async () => {
    const server = await RedisServer.start()
    await server.redis.acl('SETUSER', 'app', 'on', '>secret', '~*', '+@all', '-info')
    const { setUp } = storesOn({ url: `redis://app:secret@127.0.0.1:${server.port}` })
    await setUp()
  })

  it('what somebody else has written under the keys is refused, not guessed at', async () => {
    const server = await RedisServer.start()
    const proxy = await TcpProxy.to('127.0.0.1', server.port)
    onTestFinished(() => proxy.close())
    const { guard, leases, setUp } = storesOn({ url: `redis://127.0.0.1:${proxy.port}` })
    await setUp()
    await guard.write(intent(1, 'x'), append('x'))
    await server.redis.hset('{writefence}:applied:["","job"]', 'x', 'not JSON')
    await server.redis.set('{writefence}:lease:job', 'not JSON')
    await expect(guard.judge(intent(1, 'x'))).rejects.toBeInstanceOf(StoreUnavailableError)
    await expect(leases.get('job')).rejects.toBeInstanceOf(StoreUnavailableError)
    await server.redis.set('{writefence}:fence:["","job"]', 'no hash')
    await expect(guard.judge(intent(1, 'x'))).rejects.toThrow('WRONGTYPE')
    // One spoilt job costs the others nothing.
    const other = { token: { jobId: 'other', generation: 1 } }
    expect((await guard.write(other, append('other'))).status).toBe('applied')
    expect(proxy.accepted).toBe(2)
  })

  it('a server that is too old is told from one that is broken', async () => {
    const old = createServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', (data) => {
        const commands = data
          .toString()
          .split(/^\*\d+\r\n/m)
          .slice(1)
        for (const command of commands) {
          const asked = /EVALSHA|EVAL|HELLO|info/.exec(command)?.[0]
          if (asked === 'EVALSHA') socket.write('-NOSCRIPT No matching script\r\n')
          else if (asked === 'EVAL') {
            socket.write(`-ERR Error compiling script: user_script:1: unexpected near '#'\r\n`)
          } else if (asked === 'HELLO') socket.write('-NOPROTO\r\n')
          else socket.write('+OK\r\n')
        }
      })
    })
    await new Promise<void>((resolve) => old.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void old.close())
    const address = old.address()
    const port = typeof address === 'object' ? address?.port : 0
    const { fences } = storesOn({ url: `redis://127.0.0.1:${port}` })
    await expect(fences.createSchema()).rejects.toThrow(/too old: 7.0 or later/)
  })
})
