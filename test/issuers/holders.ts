/** How a worker comes to hold a job under each issuer. */

import { randomUUID } from 'node:crypto'
import { setInterval } from 'node:timers/promises'
import type { FencingToken } from 'writefence'
import { Etcd, tokenOfEtcd } from '../../examples/issuers/etcd.ts'
import * as postgres from '../../examples/issuers/postgres.ts'
import * as zookeeper from '../../examples/issuers/zookeeper.ts'

type Hold = (jobId: string) => Promise<FencingToken>

export const holders: Readonly<Record<'etcd' | 'ZooKeeper' | 'PostgreSQL', Hold>> = {
  async etcd(jobId) {
    const etcd = new Etcd()
    const leaseId = randomUUID()
    const lease = await etcd.grant(2)
    // What it would learn from this it does not look at.
    keepAlive(etcd, lease).catch(() => {})
    return tokenOfEtcd(jobId, await etcd.campaign(jobId, lease), leaseId)
  },

  async ZooKeeper(jobId) {
    const leaseId = randomUUID()
    const client = await zookeeper.connect(zookeeper.address, 4_000)
    const place = await zookeeper.enter(client, `/${jobId}`)
    await zookeeper.reachFront(client, place)
    return zookeeper.tokenOfZooKeeper(jobId, place.stat, leaseId)
  },

  async PostgreSQL(jobId) {
    const leaseId = randomUUID()
    const row = await postgres.acquire(await postgres.connect(), jobId)
    return postgres.tokenOfSequence(jobId, row, leaseId)
  },
}

async function keepAlive(etcd: Etcd, lease: string): Promise<void> {
  for await (const _ of setInterval(300)) await etcd.keepAlive(lease)
}
