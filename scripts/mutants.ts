/**
 * Mutation by hand: makes each slip of test/mutants in a copy of the tree and runs the tests that
 * are to notice it. Prints which test did. `--short` takes a sample, those of changed files first,
 * for about three minutes; any other argument takes those whose file or title has it.
 */

import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createVitest, type TestCase, type TestModule, type Vitest } from 'vitest/node'
import type { Mutant } from '../test/mutants/mutant.ts'
import { mutants, occurrences, testsOf } from '../test/mutants/mutants.ts'

const SHORT_MS = 150_000
const RUN_LIMIT_MS = 180_000
const OVERDUE = 'no end: the tests were stopped'
const COPIED = ['src', 'test', 'examples', 'docs', 'sql', 'package.json', 'tsconfig.json']

/** Hears of the first failure: what a run returns has results of earlier runs in it. */
const watcher = {
  failure: undefined as string | undefined,
  onTestCaseResult(test: TestCase): void {
    if (test.result().state !== 'failed') return
    this.failure ??= `${test.module.relativeModuleId}: ${test.fullName}`
  },
  onTestModuleEnd(module: TestModule): void {
    const [error] = module.errors()
    if (error !== undefined) this.failure ??= `${module.relativeModuleId}: ${error.message}`
  },
}

/** Groups of tests that pass where nothing is changed: only then does a failure say something. */
const sound = new Set<string>()

const root = fileURLToPath(new URL('../', import.meta.url))
const args = process.argv.slice(2)
const short = args.includes('--short')
const wanted = args.filter((arg) => arg !== '--short')

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

try {
  process.exitCode = await main()
} finally {
  rmSync(copy, { recursive: true, force: true })
}
process.exit()

async function main(): Promise<number> {
  const began = Date.now()
  let vitest = await start()
  const survived: Mutant[] = []
  let total = 0
  for (const mutant of chosen()) {
    if (short && Date.now() - began > SHORT_MS) break
    total += 1
    const killer = await killerOf(vitest, mutant)
    if (killer === undefined) survived.push(mutant)
    if (killer === OVERDUE) {
      await vitest.close()
      vitest = await start()
    }
    console.log(
      `${killer === undefined ? 'SURVIVED ' : 'killed   '} ${mutant.file}: ${mutant.what}`,
    )
    if (killer !== undefined) console.log(`          by ${killer}`)
  }
  await vitest.close()
  for (const { file, what } of survived) console.log(`SURVIVED  ${file}: ${what}`)
  const seconds = Math.round((Date.now() - began) / 1000)
  const figures = `total=${total} killed=${total - survived.length} survived=${survived.length}`
  console.log(`mutants: ${figures} of=${mutants.length} seconds=${seconds}`)
  return survived.length === 0 && total > 0 ? 0 : 1
}

function start(): Promise<Vitest> {
  return createVitest('test', {
    root: copy,
    config: join(copy, 'vitest.config.ts'),
    watch: false,
    bail: 1,
    reporters: [watcher],
    pool: 'threads',
    maxWorkers: 2,
    // A machine that is busy must not kill mutants.
    testTimeout: 30_000,
  }).then(async (vitest) => {
    await vitest.standalone()
    return vitest
  })
}

/** The test that notices the mutant, or how else the run failed. */
async function killerOf(vitest: Vitest, mutant: Mutant): Promise<string | undefined> {
  const path = join(copy, mutant.file)
  const text = readFileSync(path, 'utf8')
  const put = (changed: string) => {
    writeFileSync(path, changed)
    vitest.invalidateFile(path)
  }
  for (const group of testsOf(mutant)) {
    const name = group.join(', ')
    if (!sound.has(name)) {
      const failure = (await failureIn(vitest, group)) && (await failureIn(vitest, group))
      if (failure !== undefined) throw new Error(`without any mutant: ${failure}`)
      sound.add(name)
    }
    put(text.replace(mutant.find, () => mutant.replace))
    const killer = await failureIn(vitest, group)
    put(text)
    if (killer !== undefined) return killer
  }
  return undefined
}

/** The first failure of these tests, if any. */
async function failureIn(vitest: Vitest, group: readonly string[]): Promise<string | undefined> {
  const specifications = await vitest.globTestSpecifications([...group])
  if (specifications.length === 0) throw new Error(`there are no tests in ${group.join(', ')}`)
  watcher.failure = undefined
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, RUN_LIMIT_MS, undefined)
  })
  const run = await Promise.race([vitest.runTestSpecifications(specifications, false), late])
  clearTimeout(timer)
  if (run === undefined) return OVERDUE
  const [error] = run.unhandledErrors
  if (watcher.failure !== undefined || error === undefined) return watcher.failure
  return `an unhandled error: ${String(error)}`
}

/** In a short run those of changed files come first, then an even sample of the others. */
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
  const stride = 7
  const spread = named.map((mutant, index) => ({ mutant, order: index % stride }))
  return spread
    .map(({ mutant, order }) => ({ mutant, order: changed.has(mutant.file) ? -1 : order }))
    .sort((a, b) => a.order - b.order)
    .map(({ mutant }) => mutant)
}
