/** PostgreSQL: one job's writes, while a transaction elsewhere may still look at how it was. */

import { anAccount, Jobs, newOperation } from './jobs.ts'
import { type Call, load, Samples } from './load.ts'
import type { Options } from './options.ts'
import { PostgresSite } from './postgres-site.ts'
import { figure, table } from './report.ts'

const TIMED = 100

export async function measureSnapshot(options: Options): Promise<string> {
  const writes = options.short ? 100 : 2000
  const site = await PostgresSite.open()
  try {
    await site.fillFences(0, 1000)
    await site.tidy()
    const job = new Jobs(1)
    const write = () => site.write(job.any(), newOperation(), anAccount())
    await load(1, options.ms, write)
    const before = await typicalMs(write)
    const reader = await site.pool.connect()
    await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await reader.query('SELECT count(*) FROM writefence_fence')
    for (let i = 0; i < writes; i += 1) await write()
    const during = await typicalMs(write)
    await reader.query('COMMIT')
    reader.release()
    const after = await typicalMs(write)
    return table(
      ['one write to one job', 'ms'],
      [
        ['no snapshot is held', figure(before)],
        [`after ${writes} writes under a snapshot that is held`, figure(during)],
        ['the snapshot has ended', figure(after)],
      ],
    )
  } finally {
    await site.close()
  }
}

async function typicalMs(call: Call): Promise<number> {
  const samples = new Samples()
  for (let i = 0; i < TIMED; i += 1) await samples.time(call)
  return samples.summary().p50
}
