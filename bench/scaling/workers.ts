/** What workers cost the lease store: those that find work, and those that ask for it in vain. */

import { below } from './jobs.ts'
import { type Load, load } from './load.ts'
import { openSite } from './open-site.ts'
import type { Options } from './options.ts'
import { figure, table } from './report.ts'
import { ACCOUNTS, type Engine, jobOf, type Site } from './site.ts'

const WORKERS = [1, 4, 16, 64]
const TTL_MS = 600_000

/** Each claims a free job, and gives it back. */
export async function measureWorkers(engines: readonly Engine[], options: Options) {
  const rows = await overEngines(engines, async (site) => {
    const cells: string[] = []
    for (const workers of WORKERS) {
      let next = below(ACCOUNTS)
      const { perSecond, p50, p99 } = await load(workers, options.ms * options.rounds, async () => {
        next = (next + 1) % ACCOUNTS
        const request = { jobId: jobOf(next), owner: 'claimer', ttlMs: TTL_MS }
        const claimed = await site.leases.claim(request)
        if (claimed.status === 'claimed') await site.leases.release(claimed.lease)
      })
      cells.push(`${figure(perSecond)}, ${times({ p50, p99 })}`)
    }
    return cells
  })
  return table(['claim and release', ...WORKERS.map((count) => `${count} claimers`)], rows)
}

/** All ask for one job that is held, without a pause, while its holder renews. */
export async function measurePolling(engines: readonly Engine[], options: Options) {
  const counts = [0, ...WORKERS]
  const rows = await overEngines(engines, async (site) => {
    const jobId = jobOf(0)
    const claimed = await site.leases.claim({ jobId, owner: 'holder', ttlMs: TTL_MS })
    if (claimed.status !== 'claimed') throw new Error(`the job is ${claimed.status}`)
    const cells: string[] = []
    for (const workers of counts) {
      const ms = options.ms * options.rounds
      const poll = () => site.leases.claim({ jobId, owner: 'poller', ttlMs: TTL_MS })
      const [polled, renewed] = await Promise.all([
        load(workers, ms, poll),
        load(1, ms, () => site.leases.renew(claimed.lease)),
      ])
      cells.push(`${workers === 0 ? 'none' : figure(polled.perSecond)}, ${times(renewed)}`)
    }
    return cells
  })
  return table(['refusals/s, renewal', ...counts.map((count) => `${count} pollers`)], rows)
}

async function overEngines(
  engines: readonly Engine[],
  measure: (site: Site) => Promise<string[]>,
): Promise<string[][]> {
  const rows: string[][] = []
  for (const engine of engines) {
    const site = await openSite(engine)
    try {
      await site.fillLeases(0, ACCOUNTS)
      await site.tidy()
      rows.push([engine, ...(await measure(site))])
    } finally {
      await site.close()
    }
  }
  return rows
}

const times = ({ p50, p99 }: Pick<Load, 'p50' | 'p99'>) => `${figure(p50)} (${figure(p99)}) ms`
