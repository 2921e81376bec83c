/**
 * What the guard costs: guarded writes against the same statements by hand, in the same run, on
 * files of the same kind (WAL, synchronous FULL). Only the ratio means something on another
 * machine: both sides wait for the same disk.
 *
 * `npm run bench` fails below the floors; `npm run bench -- --short` only shows that it runs.
 */

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WriteGuard } from 'writefence'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'
import {
  type Credit,
  createAccounts,
  creditStatement,
  GENERATION,
  LEASE_ID,
  writeByHand,
} from './by-hand.ts'

// Writes of a group that go to different jobs write different pages: with 64 jobs the second ratio
// was 5.7 where it is above 8 with four (docs/storage.md).
const JOBS = 4
const FLOORS = { one_at_a_time: 0.85, at_64: 8 }
const short = process.argv.includes('--short')
const ROUNDS = short ? 3 : 15
const WRITES = short ? 256 : 2048

const jobIds = Array.from({ length: JOBS }, (_, index) => `import-${index + 1}`)
let sent = 0

/** The next writes: another job each time, an operation id that is new to both sides. */
function nextCredits(count: number): Credit[] {
  return Array.from({ length: count }, () => {
    const account = (sent++ % JOBS) + 1
    return { jobId: `import-${account}`, operationId: `credit-${sent}`, account }
  })
}

type Side = (credits: readonly Credit[]) => unknown

/** Writes per second of one side. */
async function throughput(side: Side): Promise<number> {
  const credits = nextCredits(WRITES)
  const started = process.hrtime.bigint()
  await side(credits)
  return WRITES / (Number(process.hrtime.bigint() - started) / 1e9)
}

/** Guarded over by hand: each round runs both, in turns the one or the other first. */
async function compare(name: keyof typeof FLOORS, guarded: Side, byHand: Side): Promise<number> {
  const rounds: { guarded: number; byHand: number; ratio: number }[] = []
  for (let round = -1; round < ROUNDS; round++) {
    const first = await throughput(round % 2 === 0 ? guarded : byHand)
    const second = await throughput(round % 2 === 0 ? byHand : guarded)
    const [g, h] = round % 2 === 0 ? [first, second] : [second, first]
    // The first round only warms up.
    if (round >= 0) rounds.push({ guarded: g, byHand: h, ratio: g / h })
  }
  const of = (key: 'guarded' | 'byHand' | 'ratio') => median(rounds.map((each) => each[key]))
  const [g, h, ratio] = [of('guarded'), of('byHand'), of('ratio')]
  console.log(
    `${name}: guarded ${Math.round(g)}/s, by hand ${Math.round(h)}/s, ` +
      `ratio ${ratio.toFixed(2)} (floor ${FLOORS[name]})`,
  )
  return ratio
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

async function main(folder: string): Promise<boolean> {
  const handDb = openSqlite(join(folder, 'by-hand.sqlite'))
  const guardDb = openSqlite(join(folder, 'guarded.sqlite'))
  createAccounts(handDb, JOBS)
  createAccounts(guardDb, JOBS)
  const byHandOnce = writeByHand(handDb, jobIds)
  const apply = creditStatement(guardDb)
  const guard = new WriteGuard(new SqliteFenceStore(guardDb))
  const guardedOnce = ({ jobId, operationId, account }: Credit) =>
    guard.write({ token: { jobId, generation: GENERATION, leaseId: LEASE_ID }, operationId }, () =>
      apply(account),
    )

  const byHand: Side = (credits) => credits.forEach(byHandOnce)
  const one = await compare(
    'one_at_a_time',
    async (credits) => {
      for (const credit of credits) await guardedOnce(credit)
    },
    byHand,
  )
  const many = await compare(
    'at_64',
    async (credits) => {
      for (let at = 0; at < credits.length; at += 64) {
        await Promise.all(credits.slice(at, at + 64).map(guardedOnce))
      }
    },
    byHand,
  )

  const total = guardDb.prepare('SELECT sum(balance) FROM account').pluck()
  assert.equal(total.get(), 2 * (ROUNDS + 1) * WRITES, 'every guarded write took place once')
  await guard.close()
  guardDb.close()
  handDb.close()
  console.log(`bench: one_at_a_time=${one.toFixed(2)} at_64=${many.toFixed(1)}`)
  return one >= FLOORS.one_at_a_time && many >= FLOORS.at_64
}

const folder = mkdtempSync(join(tmpdir(), 'writefence-bench-'))
try {
  if (!(await main(folder)) && !short) process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
