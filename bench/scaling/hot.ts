/** One job is one lock: what one job alone can have, and what a pool has to do with it. */

import { anAccount, Jobs, newOperation } from './jobs.ts'
import { type Call, load } from './load.ts'
import { openSite } from './open-site.ts'
import type { Options } from './options.ts'
import { each, figure, table } from './report.ts'
import { inTurns, type Rates } from './rounds.ts'
import { ACCOUNTS, type Engine } from './site.ts'

const IN_FLIGHT = [1, 16, 64]
const POOLS = [1, 2, 4, 8, 16, 32]

/** A line for each engine: all writes to one job, and to as many jobs as there are accounts. */
export async function measureHot(engines: readonly Engine[], options: Options): Promise<string> {
  const rows: string[][] = []
  for (const engine of engines) {
    const site = await openSite(engine)
    try {
      await site.fillFences(0, ACCOUNTS)
      const jobs = new Jobs(ACCOUNTS)
      const measured: Rates<'one' | 'many'>[] = []
      for (const inFlight of IN_FLIGHT) {
        measured.push(
          await inTurns(inFlight, options, {
            one: () => site.write(jobs.tokenOf(0), newOperation(), anAccount()),
            many: () => site.write(jobs.any(), newOperation(), anAccount()),
          }),
        )
      }
      const one = each(measured, (rates) => figure(rates.rate('one')))
      const ratio = each(measured, (rates) => figure(rates.ratio('one', 'many')))
      rows.push([engine, one, ratio])
    } finally {
      await site.close()
    }
  }
  const head = ['engine', `writes/s to one job, ${IN_FLIGHT.join(' · ')} in flight`]
  return table([...head, 'of writes to many jobs'], rows)
}

/** What 64 writes in flight to one job leave to those of the others, 4 in flight. */
export async function measureNeighbours(engines: readonly Engine[], options: Options) {
  const rows: string[][] = []
  for (const engine of engines) {
    const site = await openSite(engine)
    try {
      await site.fillFences(0, ACCOUNTS)
      const jobs = new Jobs(ACCOUNTS)
      const hot = () => site.write(jobs.tokenOf(0), newOperation(), anAccount())
      const beside = async (call?: Call) => {
        const ms = options.ms * options.rounds
        const others = load(4, ms, () => site.write(jobs.any(), newOperation(), anAccount()))
        const [measured] = await Promise.all([others, call && load(64, ms, call)])
        return `${figure(measured.perSecond)}, ${figure(measured.p50)} (${figure(measured.p99)}) ms`
      }
      rows.push([engine, await beside(), await beside(hot)])
    } finally {
      await site.close()
    }
  }
  return table(['writes/s of other jobs', 'alone', 'beside 64 of one job'], rows)
}

/** A line for each engine that has a pool: 64 writes in flight over so many connections. */
export async function measurePool(engines: readonly Engine[], options: Options): Promise<string> {
  const rows: string[][] = []
  for (const engine of engines.filter((each) => each === 'postgres' || each === 'mariadb')) {
    const rates: number[] = []
    for (const connections of POOLS) {
      const site = await openSite(engine, { connections })
      try {
        await site.fillFences(0, ACCOUNTS)
        const jobs = new Jobs(ACCOUNTS)
        const write = () => site.write(jobs.any(), newOperation(), anAccount())
        rates.push((await inTurns(64, options, { write })).rate('write'))
      } finally {
        await site.close()
      }
    }
    rows.push([engine, ...rates.map(figure)])
  }
  const head = POOLS.map((connections) => `pool of ${connections}`)
  return table(['writes/s, 64 in flight', ...head], rows)
}
