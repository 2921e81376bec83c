/**
 * Mutation by hand: makes each slip of test/mutants in a copy of the tree and runs the tests that
 * are to notice it. Prints which test did. `--short` takes a sample, those of changed files first,
 * for about three minutes; any other argument takes those whose file or title has it. Those of an
 * engine whose server does not answer are left out; with CI=true or REQUIRE_ENGINES=1 that fails.
 */

import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Mutant } from '../test/mutants/mutant.ts'
import { engineOf, mutants, occurrences, testsOf } from '../test/mutants/mutants.ts'
import { type Failure, WatchedTests } from '../test/mutants/watched-tests.ts'

const SHORT_MS = 150_000
const ATTEMPTS = 3
const COPIED = ['src', 'test', 'examples', 'docs', 'sql', 'package.json', 'tsconfig.json']
/** In every file of tests of an engine: whether there is a server to ask. */
const PRESENCE = 'the server answers, where it is required'

/** Tests that pass where nothing is changed: only then does a failure say something. */
const sound = new Set<string>()

const root = fileURLToPath(new URL('../', import.meta.url))
const args = process.argv.slice(2)
const short = args.includes('--short')
const wanted = args.filter((arg) => arg !== '--short')
const required = process.env.CI === 'true' || process.env.REQUIRE_ENGINES === '1'

const stale = mutants.filter(
  (each) => occurrences(each, readFileSync(root + each.file, 'utf8')) !== 1,
)
for (const { file, what } of stale) console.error(`STALE     ${file}: ${what}`)
if (stale.length > 0) process.exit(2)

const copy = mkdtempSync(join(tmpdir(), 'writefence-mutants-'))
for (const path of [...COPIED, 'vitest.config.ts']) {
  cpSync(root + path, join(copy, path), { recursive: true })
}
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'), 'dir')
const tests = new WatchedTests(copy)

try {
  process.exitCode = await main()
} finally {
  await tests.close()
  rmSync(copy, { recursive: true, force: true })
}
process.exit()

async function main(): Promise<number> {
  const began = Date.now()
  const missing = await missingEngines()
  const survived: Mutant[] = []
  let total = 0
  for (const mutant of chosen()) {
    if (short && Date.now() - began > SHORT_MS) break
    if (missing.has(engineOf(mutant))) continue
    total += 1
    const killer = await killerOf(mutant)
    if (killer === undefined) survived.push(mutant)
    console.log(
      `${killer === undefined ? 'SURVIVED ' : 'killed   '} ${mutant.file}: ${mutant.what}`,
    )
    if (killer !== undefined) console.log(`          by ${killer.what}`)
  }
  for (const { file, what } of survived) console.log(`SURVIVED  ${file}: ${what}`)
  const seconds = Math.round((Date.now() - began) / 1000)
  const figures = `total=${total} killed=${total - survived.length} survived=${survived.length}`
  console.log(`mutants: ${figures} of=${mutants.length} seconds=${seconds}`)
  const complete = missing.size === 0 || !required
  return complete && survived.length === 0 && total > 0 ? 0 : 1
}

/** Engines whose server does not answer: nothing would notice what is done to them. */
async function missingEngines(): Promise<Set<string | undefined>> {
  const missing = new Set<string | undefined>()
  for (const engine of new Set(chosen().map(engineOf))) {
    if (engine === undefined) continue
    const failure = await tests.failureOf(PRESENCE, [`test/engines/${engine}`])
    if (failure === undefined) continue
    missing.add(engine)
    console.log(`not run: those of ${engine}, since its server does not answer`)
  }
  return missing
}

/** What notices the mutant: a test, or how else the run failed. */
async function killerOf(mutant: Mutant): Promise<Failure | undefined> {
  const { file, find, replace } = mutant
  const path = join(copy, file)
  const text = readFileSync(path, 'utf8')
  const put = async (changed: string) => {
    writeFileSync(path, changed)
    await tests.invalidate(file)
  }
  for (const group of testsOf(mutant)) {
    await put(text.replace(find, () => replace))
    const killer = await failureThatComesAgain(group)
    await put(text)
    if (killer === undefined) continue
    await assertSound(killer, group)
    return killer
  }
  return undefined
}

/** A failure of these tests that the same test has once more: others are the machine's own. */
async function failureThatComesAgain(group: readonly string[]): Promise<Failure | undefined> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const failure = await tests.failure(group)
    if (failure === undefined || failure.test === undefined) return failure
    const { name, file } = failure.test
    if ((await tests.failureOf(name, [file])) !== undefined) return failure
    console.log(`          not again: ${failure.what}`)
  }
  return undefined
}

/** @throws Error where the same fails without the mutant */
async function assertSound({ what, test }: Failure, group: readonly string[]): Promise<void> {
  const known = test === undefined ? group.join(', ') : what
  if (sound.has(known)) return
  const again = () =>
    test === undefined ? tests.failure(group) : tests.failureOf(test.name, [test.file])
  const failure = (await again()) && (await again())
  if (failure !== undefined) throw new Error(`without any mutant: ${failure.what}`)
  sound.add(known)
}

/** In a short run those of changed files come first; the others in an order that is even early. */
function chosen(): Mutant[] {
  const named = mutants.filter(({ file, what }) =>
    wanted.every((word) => file.includes(word) || what.includes(word)),
  )
  if (!short) return named
  const { stdout } = spawnSync('git', ['diff', '--name-only', 'HEAD~1'], {
    cwd: root,
    encoding: 'utf8',
  })
  const changed = new Set((stdout ?? '').split('\n'))
  // Multiples of the golden ratio, less what is whole of them, fill the interval evenly.
  const place = (index: number) => (index * 0.618_033_988_749_895) % 1
  return named
    .map((mutant, index) => ({ mutant, order: changed.has(mutant.file) ? -1 : place(index) }))
    .sort((a, b) => a.order - b.order)
    .map(({ mutant }) => mutant)
}
