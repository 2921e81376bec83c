/** One destination with its database and its two workers: the demo has two, with and without. */

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { HttpLeaseStore } from 'writefence/http'
import { openSqlite } from 'writefence/sqlite'
import { JOB_ID } from './job.ts'
import type { Actor, Processes } from './processes.ts'

/** Whether the destination checks the fencing token. */
export type WorldName = 'guarded' | 'unguarded'

export interface World {
  readonly name: WorldName
  readonly file: string
  readonly url: string
  readonly destination: Actor
  readonly A: Actor
  readonly B: Actor
}

/** Starts the processes, and gives the job a past: six workers have had it, and gave it back. */
export async function openWorld(
  processes: Processes,
  folder: string,
  name: WorldName,
): Promise<World> {
  const file = join(folder, `${name}.db`)
  const destination = processes.start('destination.ts', file, name)
  const A = processes.start('worker-a.ts', name)
  const B = processes.start('worker-b.ts', name)
  const { answer: url } = await destination.next()

  const leases = new HttpLeaseStore(url)
  for (const owner of ['1', '2', '3', '4', '5', '6']) {
    const claimed = await leases.claim({ jobId: JOB_ID, owner, ttlMs: 60_000 })
    assert(claimed.status === 'claimed')
    assert.equal((await leases.release(claimed.lease)).status, 'released')
  }
  for (const worker of [A, B]) assert.equal((await worker.next()).answer, 'ready')
  return { name, file, url, destination, A, B }
}

/** The amounts on record, in order; read from the file, once nobody has it open any more. */
export function readCredits({ file }: World): number[] {
  const db = openSqlite(file)
  const amounts = db.prepare('SELECT amount FROM credits ORDER BY rowid').pluck().all()
  db.close()
  return amounts as number[]
}
