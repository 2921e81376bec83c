/** Fences by job over several stores: what a second one brings on one machine. */

import { fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'
import { anAccount, Jobs, newOperation } from './jobs.ts'
import { median } from './load.ts'
import { openSite } from './open-site.ts'
import type { Options } from './options.ts'
import { figure, table } from './report.ts'
import { inTurns } from './rounds.ts'
import type { Engine, Site } from './site.ts'
import { createAccounts } from './sqlite-site.ts'

const JOBS = 1000
const IN_FLIGHT = 64

/** A line for each engine: 64 writes in flight to one store, and to two in turns of the jobs. */
export async function measureStores(engines: readonly Engine[], options: Options) {
  const rows: string[][] = []
  for (const engine of engines) {
    const sites = [await openSite(engine), await openSite(engine, { suffix: '_second' })]
    try {
      for (const site of sites) await site.fillFences(0, JOBS)
      const jobs = new Jobs(JOBS)
      const write = (places: readonly Site[]) => () => {
        const token = jobs.any()
        return placeOf(places, token.jobId).write(token, newOperation(), anAccount())
      }
      const calls = { one: write(sites.slice(0, 1)), two: write(sites) }
      const rates = await inTurns(IN_FLIGHT, options, calls)
      rows.push([`${engine}, one process`, ...[rates.rate('one'), rates.rate('two')].map(figure)])
      rows.at(-1)?.push(figure(rates.ratio('two', 'one')))
    } finally {
      for (const site of sites) await site.close()
    }
  }
  if (engines.includes('sqlite'))
    rows.push(['sqlite, two processes', ...(await twoProcesses(options))])
  return table(['writes/s, 64 in flight', 'one store', 'two stores', 'ratio'], rows)
}

/** By the digest of the job: the same place in every process, and evenly spread. */
function placeOf<T>(places: readonly T[], jobId: string): T {
  const digest = createHash('sha256').update(jobId).digest()
  const place = places[digest.readUInt32BE() % places.length]
  if (place === undefined) throw new Error('there is no place')
  return place
}

/** Two processes that write to one file, and to a file each. */
async function twoProcesses({ ms, rounds }: Options): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'writefence-scaling-'))
  const seen: { one: number; two: number }[] = []
  try {
    const [first, second] = [join(folder, 'first'), join(folder, 'second')]
    for (const path of [first, second]) setUp(path)
    for (let round = 0; round < rounds; round += 1) {
      const one = await writtenBy([first, first], ms)
      const two = await writtenBy([first, second], ms)
      seen.push({ one, two })
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
  const figures = [seen.map(({ one }) => one), seen.map(({ two }) => two)]
  return [...figures, seen.map(({ one, two }) => two / one)].map((each) => figure(median(each)))
}

function setUp(path: string): void {
  const db = openSqlite(path)
  createAccounts(db)
  new SqliteFenceStore(db)
  db.close()
}

/** Writes a second, of all processes together. */
async function writtenBy(paths: readonly string[], ms: number): Promise<number> {
  const script = fileURLToPath(new URL('../scaling-writer.ts', import.meta.url))
  const counts = paths.map(async (path, i) => {
    const writer = fork(script, [path, String(i), String(ms)])
    let perSecond = Number.NaN
    writer.on('message', (message) => {
      perSecond = Number(message)
    })
    const [code] = await once(writer, 'exit')
    if (code !== 0) throw new Error(`a writer ended with ${code}`)
    return perSecond
  })
  return (await Promise.all(counts)).reduce((sum, each) => sum + each, 0)
}
