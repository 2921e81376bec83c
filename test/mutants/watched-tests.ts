/** Runs tests of a copy of the tree, in one Vitest that stays: which of them fails first. */

import { join } from 'node:path'
import { inspect } from 'node:util'
import {
  createVitest,
  type TestCase,
  type TestModule,
  type TestRunEndReason,
  type TestSpecification,
  type Vitest,
} from 'vitest/node'

const RUN_LIMIT_MS = 180_000

export interface Failure {
  readonly what: string
  /** Absent where it was no test that failed, or none of its own. */
  readonly test?: { readonly file: string; readonly name: string } | undefined
}

/** Hears of the first failure: what a run returns has results of earlier runs in it. */
class Watcher {
  failure: Failure | undefined
  ran = 0
  interrupted = false

  onTestCaseResult(test: TestCase): void {
    const { state } = test.result()
    if (state !== 'skipped') this.ran += 1
    if (state !== 'failed') return
    const file = test.module.relativeModuleId
    this.failure ??= { what: `${file}: ${test.fullName}`, test: { file, name: test.fullName } }
  }

  onTestModuleEnd(module: TestModule): void {
    const [error] = module.errors()
    if (error !== undefined) {
      this.failure ??= { what: `${module.relativeModuleId}: ${error.message}` }
    }
  }

  onTestRunEnd(_: readonly TestModule[], __: readonly unknown[], reason: TestRunEndReason): void {
    this.interrupted = reason === 'interrupted'
  }
}

export class WatchedTests {
  readonly #root: string
  readonly #watcher = new Watcher()
  #vitest: Vitest | undefined

  constructor(root: string) {
    this.#root = root
  }

  /** The first failure of the tests in files with one of these names, if any. */
  async failure(files: readonly string[]): Promise<Failure | undefined> {
    return (await this.#run(files)).failure
  }

  /** The same of the tests of that name only. @throws Error where there are none */
  async failureOf(name: string, files: readonly string[]): Promise<Failure | undefined> {
    const vitest = await this.#start()
    // Vitest looks for the parts of a name with a space between them, and reports them otherwise.
    const parts = name.split(' > ').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    vitest.setGlobalTestNamePattern(new RegExp(parts.join('(?: >)? ')))
    const { ran, failure } = await this.#run(files)
    this.#vitest?.resetGlobalTestNamePattern()
    if (ran === 0 && failure === undefined) throw new Error(`there is no test named ${name}`)
    return failure
  }

  /** The file has changed. */
  async invalidate(path: string): Promise<void> {
    const vitest = await this.#start()
    vitest.invalidateFile(join(this.#root, path))
  }

  async close(): Promise<void> {
    await this.#vitest?.close()
    this.#vitest = undefined
  }

  async #run(files: readonly string[]): Promise<{ ran: number; failure: Failure | undefined }> {
    const vitest = await this.#start()
    const specifications = await vitest.globTestSpecifications([...files])
    if (specifications.length === 0) throw new Error(`there are no tests in ${files.join(', ')}`)
    for (;;) {
      this.#watcher.failure = undefined
      this.#watcher.ran = 0
      const failure = await this.#firstOf(vitest, specifications)
      // The first failure of a run stops the run; two at once may stop the next one as well.
      if (failure !== undefined || !this.#watcher.interrupted) {
        return { ran: this.#watcher.ran, failure }
      }
    }
  }

  async #firstOf(
    vitest: Vitest,
    specifications: TestSpecification[],
  ): Promise<Failure | undefined> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(resolve, RUN_LIMIT_MS, undefined)
    })
    const run = await Promise.race([vitest.runTestSpecifications(specifications, false), late])
    clearTimeout(timer)
    if (run === undefined) {
      // What goes on would be in the way of the next run.
      await this.close()
      return { what: 'no end: the tests were stopped' }
    }
    const [error] = run.unhandledErrors
    if (this.#watcher.failure !== undefined || error === undefined) return this.#watcher.failure
    return { what: `an unhandled error: ${messageOf(error)}` }
  }

  async #start(): Promise<Vitest> {
    if (this.#vitest !== undefined) return this.#vitest
    this.#vitest = await createVitest('test', {
      root: this.#root,
      config: join(this.#root, 'vitest.config.ts'),
      watch: false,
      bail: 1,
      reporters: [this.#watcher],
      // A thread that is ended in the midst of an HTTP message can take the process with it.
      pool: 'forks',
      maxWorkers: 2,
      // A machine that is busy must not kill mutants.
      testTimeout: 30_000,
      // A server that is missing must not let them live.
      env: { REQUIRE_ENGINES: '1' },
    })
    await this.#vitest.standalone()
    return this.#vitest
  }
}

/** What comes from a worker need not be an Error, nor have a text of its own. */
function messageOf(error: unknown): string {
  const has = typeof error === 'object' && error !== null && 'message' in error
  return has ? String(error.message) : inspect(error)
}
