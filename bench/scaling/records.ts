/** How the cost of writes and prunes grows with the number of operation records. */

import { PRUNED, timePrunes } from './fences.ts'
import { anAccount, Jobs, newOperation } from './jobs.ts'
import type { Load } from './load.ts'
import { openSite } from './open-site.ts'
import type { Options } from './options.ts'
import { figure, megabytes, power, table } from './report.ts'
import { inTurns } from './rounds.ts'
import type { Engine, Site } from './site.ts'

const IN_FLIGHT = 16
const SIZES = [1e4, 1e5, 1e6]

export async function measureRecords(engine: Engine, options: Options): Promise<string> {
  const fences = options.short ? 100 : 10_000
  const site = await openSite(engine)
  const none = await openSite(engine, { suffix: '_none' })
  const rows: string[][] = []
  try {
    for (const each of [site, none]) await each.fillFences(0, fences)
    let filled = 0
    for (const records of options.short ? [PRUNED, 2 * PRUNED] : SIZES) {
      await site.fillRecords(filled, records, fences)
      filled = records
      await site.tidy()
      const { records: bytes } = await site.bytes()
      const jobs = new Jobs(fences)
      const write = (at: Site) => () => at.write(jobs.any(), newOperation(), anAccount())
      const rates = await inTurns(IN_FLIGHT, options, { all: write(site), none: write(none) })
      const prune = await timePrunes(site, options)
      rows.push(row(records, bytes, prune, [rates.rate('all'), rates.ratio('all', 'none')]))
      console.error(`${engine}: ${power(records)} records measured`)
    }
  } finally {
    await none.close()
    await site.close()
  }
  const writes = `writes/s, ${IN_FLIGHT} in flight`
  const head = ['records', 'they take', 'each', writes, 'of none', `prune of ${PRUNED}`]
  return table(head, rows)
}

function row(records: number, bytes: number, prune: Load, writes: readonly number[]): string[] {
  const each = `${Math.round(bytes / records)} B`
  return [power(records), megabytes(bytes), each, ...writes.map(figure), figure(prune.p50)]
}
