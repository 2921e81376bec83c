import { randomUUID } from 'node:crypto'
import type { Client } from 'node-zookeeper-client'
import { expect, it, onTestFinished, vi } from 'vitest'
import { guard, write, written } from '../../examples/issuers/destination.ts'
import { Etcd, type LeaderKey, tokenOfEtcd } from '../../examples/issuers/etcd.ts'
import {
  ask,
  connect,
  enter,
  type Place,
  tokenOfZooKeeper,
} from '../../examples/issuers/zookeeper.ts'
import { describeEngine, problemOf } from '../engines/engine.ts'
import { EtcdServer, findEtcd, findZooKeeper, ZooKeeperServer } from './own-server.ts'

const TIMEOUT = 60_000

describeEngine('etcd, restored from a backup', await problemOf(findEtcd), () => {
  it('refuses, or shows, what it numbers again', { timeout: TIMEOUT }, async () => {
    const server = await EtcdServer.prepare()
    const etcd = new Etcd(server.url)
    const leads = async () => etcd.campaign('election', await etcd.grant(60))
    /** The next leader, once the one before has lost its lease. */
    const succeeds = async (leader: LeaderKey) => {
      await etcd.revoke(leader.lease)
      return leads()
    }
    const token = (leader: LeaderKey) => tokenOfEtcd('restored', leader, randomUUID())
    /** As it is without leaseIds. */
    const bare = ({ rev }: LeaderKey) => ({ jobId: 'bare', generation: Number(rev) })

    await server.start('data')
    const a = await leads()
    expect(await write(token(a), 'A')).toBe('written')
    await server.backUp('backup')
    const b = await succeeds(a)
    const c = await succeeds(b)
    const tokenOfC = token(c)
    expect(await write(tokenOfC, 'C')).toBe('written')
    expect(await write(bare(c), 'C')).toBe('written')

    await server.stop()
    await server.restore('backup', 'restored')
    await server.start('restored')
    // It goes on from the backup: two more leaders get the numbers of B and C.
    const d = await succeeds(a)
    const e = await succeeds(d)
    expect([d.rev, e.rev]).toEqual([b.rev, c.rev])
    expect(await write(token(d), 'D')).toBe('stale')
    expect(await write(token(e), 'E')).toBe('conflict')
    expect(await write(bare(e), 'E')).toBe('written')
    expect(await write(bare(c), 'C, late')).toBe('written') // a stale one

    // The way out: every number from now on is above the fence.
    const offset = (await guard.inspect('restored'))?.highestGeneration ?? 0
    const raised = { ...token(e), generation: offset + Number(e.rev) }
    expect(await write(raised, 'E, raised')).toBe('written')
    expect(await write(tokenOfC, 'C, late')).toBe('stale')
    expect(written('restored')).toEqual(['A', 'C', 'E, raised'])
  })
})

describeEngine('ZooKeeper, started again', await problemOf(findZooKeeper), () => {
  it('numbers on in a new epoch, and from the start without its data', {
    timeout: TIMEOUT,
  }, async () => {
    const server = await ZooKeeperServer.prepare()
    const entered = async (): Promise<Place> => {
      const client = await vi.waitFor(() => connect(server.address), {
        timeout: 30_000,
        interval: 100,
      })
      onTestFinished(() => client.close())
      await uses(client)
      return enter(client, '/lock')
    }
    const token = ({ stat }: Place) => tokenOfZooKeeper('epochs', stat, randomUUID())
    const half = ({ stat }: Place) => ({ jobId: 'half', generation: stat.czxid.readInt32BE(4) })
    const epoch = ({ stat }: Place) => stat.czxid.readInt32BE(0)

    server.start()
    const a = await entered()
    const tokenOfA = token(a)
    await entered()
    const b = await entered()
    expect(await write(tokenOfA, 'A')).toBe('written')
    expect(await write(half(b), 'B')).toBe('written')

    await server.stop()
    server.start()
    const c = await entered()
    expect([epoch(a), epoch(b), epoch(c)]).toEqual([1, 1, 2])
    const tokenOfC = token(c)
    expect(await write(tokenOfC, 'C')).toBe('written')
    expect(await write(tokenOfA, 'A, late')).toBe('stale')
    expect(await write(half(c), 'C')).toBe('stale') // a good one, for ever
    expect(await write(half(b), 'B, late')).toBe('written') // a stale one

    await server.stop()
    server.start({ empty: true })
    expect(await write(token(await entered()), 'D')).toBe('stale') // a good one, for ever
    expect(written('epochs')).toEqual(['A', 'C'])
  })
})

/** A few changes, as any client makes them. */
async function uses(client: Client): Promise<void> {
  for (let i = 0; i < 5; i += 1) {
    await ask((done) => client.mkdirp(`/${randomUUID()}`, done))
  }
}
