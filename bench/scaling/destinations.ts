/** What a takeover costs: a new holder advances the fence at each of its destinations first. */

import { runWithLease } from 'writefence'
import { Samples } from './load.ts'
import { openSite } from './open-site.ts'
import type { Options } from './options.ts'
import { figure, table } from './report.ts'
import { type Engine, GENERATION, jobOf, OWNER, type Site } from './site.ts'

const DESTINATIONS = [0, 1, 2, 4, 8, 16]
const JOBS = 8

/** From the call of `runWithLease` to that of its handler; each destination has its own fences. */
export async function measureDestinations(engines: readonly Engine[], options: Options) {
  const rows: string[][] = []
  for (const engine of engines) {
    const site = await openSite(engine)
    try {
      await site.fillLeases(0, JOBS)
      await takeAll(site, Math.max(...DESTINATIONS))
      const cells: string[] = []
      for (const count of DESTINATIONS) {
        const samples = new Samples()
        for (let i = 0; i < (options.short ? 1 : 5); i += 1) await takeAll(site, count, samples)
        const { p50, p99 } = samples.summary()
        cells.push(`${figure(p50)} (${figure(p99)}) ms`)
      }
      rows.push([engine, ...cells])
    } finally {
      await site.close()
    }
  }
  return table(['handler starts after', ...DESTINATIONS.map((n) => `${n} destinations`)], rows)
}

async function takeAll(site: Site, count: number, samples = new Samples()): Promise<void> {
  const destinations = Array.from({ length: count }, (_, i) => ({
    advance: (token: Parameters<Site['guard']['advance']>[0]) =>
      site.guard.advance(token, `destination-${i}`),
  }))
  for (let job = 0; job < JOBS; job += 1) {
    const run = { jobId: jobOf(job), owner: OWNER, ttlMs: 600_000, destinations }
    let ended: Promise<unknown> | undefined
    await samples.time(
      () =>
        new Promise<void>((resolve, reject) => {
          ended = runWithLease(site.leases, { ...run, settle: 'release' }, async (lease) => {
            if (lease.generation <= GENERATION) throw new Error('nothing was taken over')
            resolve()
          })
          ended.catch(reject)
        }),
    )
    await ended
  }
}
