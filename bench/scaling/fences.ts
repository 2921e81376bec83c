/** How the cost of writes and leases grows with the number of jobs. */

import { anAccount, Jobs, newOperation } from './jobs.ts'
import { type Load, Samples } from './load.ts'
import { openSite } from './open-site.ts'
import type { Options } from './options.ts'
import { each, figure, megabytes, power, table } from './report.ts'
import { inTurns, type Rates } from './rounds.ts'
import { type Engine, jobOf, OWNER, type Site } from './site.ts'

const IN_FLIGHT = [1, 16, 64]
export const PRUNED = 1000
/** What every size is compared with, in the same seconds. */
const FEW = 1000

type Verbs = Readonly<Record<'advance' | 'claim' | 'renew' | 'release' | 'prune', Load>>

interface Measured {
  readonly fences: number
  readonly bytes: number
  readonly leaseBytes: number
  readonly writes: readonly Rates<'bare' | 'few' | 'all'>[]
  readonly verbs: Verbs
}

export async function measureFences(engine: Engine, options: Options): Promise<string> {
  const site = await openSite(engine)
  const few = await openSite(engine, { suffix: '_few' })
  try {
    await few.fillFences(0, FEW)
    const fewJobs = new Jobs(FEW)
    const jobs = new Jobs(0)
    const rows: Measured[] = []
    for (const fences of options.fencesOf(engine)) {
      await grow(site, jobs, fences)
      const { fences: bytes, leases: leaseBytes } = await site.bytes()
      const writes: Measured['writes'][number][] = []
      for (const inFlight of IN_FLIGHT) {
        writes.push(
          await inTurns(inFlight, options, {
            bare: () => site.plain(anAccount()),
            few: () => few.write(fewJobs.any(), newOperation(), anAccount()),
            all: () => site.write(jobs.any(), newOperation(), anAccount()),
          }),
        )
      }
      rows.push({ fences, bytes, leaseBytes, writes, verbs: await timeVerbs(site, jobs, options) })
      console.error(`${engine}: ${power(fences)} fences measured`)
    }
    return [site.about, writesTable(rows), verbsTable(rows)].join('\n\n')
  } finally {
    await few.close()
    await site.close()
  }
}

async function grow(site: Site, jobs: Jobs, to: number): Promise<void> {
  await site.fillFences(jobs.count, to)
  await site.fillLeases(jobs.count, to)
  jobs.count = to
  await site.tidy()
}

/** One at a time, each of another job, spread over all there are. */
async function timeVerbs(site: Site, jobs: Jobs, options: Options): Promise<Verbs> {
  const calls = options.short ? 5 : 200
  const advance = new Samples()
  const claim = new Samples()
  const renew = new Samples()
  const release = new Samples()
  for (let i = 0; i < calls; i += 1) {
    await advance.time(() => site.guard.advance(jobs.next()))
    const jobId = jobOf(Math.floor((i * jobs.count) / calls))
    const claiming = () => site.leases.claim({ jobId, owner: OWNER, ttlMs: 60_000 })
    const claimed = await claim.time(claiming)
    if (claimed.status !== 'claimed') throw new Error(`${jobId} is ${claimed.status}`)
    await renew.time(() => site.leases.renew(claimed.lease))
    await release.time(() => site.leases.release(claimed.lease))
  }
  const prune = await timePrunes(site, options, (records) =>
    site.fillRecords(0, records, jobs.count),
  )
  return {
    advance: advance.summary(),
    claim: claim.summary(),
    renew: renew.summary(),
    release: release.summary(),
    prune,
  }
}

/** Batches of records that are old enough, which `fill` sees to. */
export async function timePrunes(
  site: Site,
  { short }: Options,
  fill: (records: number) => Promise<void> = async () => {},
): Promise<Load> {
  const batches = short ? 1 : 10
  await fill(batches * PRUNED)
  const samples = new Samples()
  for (let i = 0; i < batches; i += 1) {
    const prune = () => site.guard.prune({ olderThanMs: 60_000, limit: PRUNED })
    const { pruned } = await samples.time(prune)
    if (pruned !== PRUNED) throw new Error(`${pruned} records were pruned`)
  }
  return samples.summary()
}

function writesTable(rows: readonly Measured[]): string {
  const body = rows.map(({ fences, bytes, leaseBytes, writes }) => [
    power(fences),
    megabytes(bytes),
    `${Math.round(bytes / fences)} B`,
    `${Math.round(leaseBytes / fences)} B`,
    each(writes, (rates) => figure(rates.rate('all'))),
    each(writes, (rates) => figure(rates.ratio('all', 'bare'))),
    each(writes, (rates) => figure(rates.ratio('all', 'few'))),
  ])
  const head = ['fences', 'they take', 'each', 'a lease', `writes/s, ${IN_FLIGHT.join(' · ')}`]
  return table([...head, 'of the bare effect', `of ${power(FEW)} fences`], body)
}

function verbsTable(rows: readonly Measured[]): string {
  const cell = ({ p50, p99 }: Load) => `${figure(p50)} (${figure(p99)})`
  const body = rows.map(({ fences, verbs }) => [
    power(fences),
    ...[verbs.advance, verbs.claim, verbs.renew, verbs.release].map(cell),
    figure(verbs.prune.p50),
  ])
  return table(['fences', 'advance', 'claim', 'renew', 'release', `prune of ${PRUNED}`], body)
}
