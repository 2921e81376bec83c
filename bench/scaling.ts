/**
 * How the cost grows, as the tables of docs/scaling.md: `npm run bench:scaling -- [--short]
 * [--engine sqlite,postgres,mariadb,redis] [--fences 1000,1e6] [--only fences,records,...]`.
 * Figures are of the machine, ratios are of one run, both sides in the same seconds. Takes about a
 * quarter of an hour, and some 10 GB for a while; `--short` only shows that it runs.
 */

import { execFileSync } from 'node:child_process'
import { availableParallelism, loadavg } from 'node:os'
import { measureDestinations } from './scaling/destinations.ts'
import { measureFences } from './scaling/fences.ts'
import { measureHot, measureNeighbours, measurePool } from './scaling/hot.ts'
import { openSite } from './scaling/open-site.ts'
import { type Options, optionsFrom, type Section } from './scaling/options.ts'
import { measureRecords } from './scaling/records.ts'
import type { Engine } from './scaling/site.ts'
import { measureSnapshot } from './scaling/snapshot.ts'
import { measureStores } from './scaling/stores.ts'
import {
  measureFenceUpdates,
  measureLeaseUpdates,
  measureRecordUpdates,
} from './scaling/updates.ts'
import { measurePolling, measureWorkers } from './scaling/workers.ts'

type Measure = (engines: readonly Engine[], options: Options) => Promise<string>

const measures: Readonly<Record<Section, Measure>> = {
  fences: overEngines(measureFences),
  records: overEngines(measureRecords),
  hot: measureHot,
  neighbours: measureNeighbours,
  workers: measureWorkers,
  polling: measurePolling,
  destinations: measureDestinations,
  pool: measurePool,
  updates,
  stores: measureStores,
}

async function updates(engines: readonly Engine[], options: Options): Promise<string> {
  if (!engines.includes('postgres')) return 'PostgreSQL was not asked for.'
  const tables: string[] = []
  const all = [measureFenceUpdates, measureSnapshot, measureLeaseUpdates, measureRecordUpdates]
  for (const measure of all) tables.push(await measure(options))
  return tables.join('\n\n')
}

/** A chapter for each engine. */
function overEngines(measure: (engine: Engine, options: Options) => Promise<string>): Measure {
  return async (engines, options) => {
    const chapters: string[] = []
    for (const engine of engines)
      chapters.push(`**${engine}**\n\n${await measure(engine, options)}`)
    return chapters.join('\n\n')
  }
}

/** Those whose server is there. @throws what it has against it, where all are required */
async function answering(engines: readonly Engine[]): Promise<Engine[]> {
  const required = process.env.CI === 'true' || process.env.REQUIRE_ENGINES === '1'
  const found: Engine[] = []
  for (const engine of engines) {
    try {
      await (await openSite(engine)).close()
      found.push(engine)
    } catch (error) {
      if (required) throw error
      console.log(`${engine} was not measured, since it does not answer: ${error}\n`)
    }
  }
  return found
}

function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
  } catch {
    return 'unknown'
  }
}

const loads = () => loadavg().map((each) => each.toFixed(1))[0]

const options = optionsFrom(process.argv.slice(2))
const engines = await answering(options.engines)
const began = Date.now()
console.log(
  `${new Date().toISOString().slice(0, 10)}, commit ${commit()}, ` +
    `${availableParallelism()} cores, Node ${process.versions.node}, load ${loads()} before\n`,
)
for (const section of options.sections) {
  console.log(`### ${section}\n\n${await measures[section](engines, options)}\n`)
}
const seconds = Math.round((Date.now() - began) / 1000)
console.log(`load ${loads()} after\n`)
console.log(
  `scaling: engines=${engines.length} sections=${options.sections.length} seconds=${seconds}`,
)
