/**
 * Prints `<passed> <failed>` of a vitest JSON report, the one argument.
 *
 * A file that could not be loaded has no tests to count: it counts as one that failed. A test that
 * did not run counts as failed too, so that nothing is green because it was left out.
 */

import { readFileSync } from 'node:fs'

interface Report {
  readonly numPassedTests: number
  readonly numTotalTests: number
  readonly testResults: readonly { status: string; assertionResults: readonly unknown[] }[]
}

const [path = ''] = process.argv.slice(2)
const report = JSON.parse(readFileSync(path, 'utf8')) as Report
const unloaded = report.testResults.filter(
  (file) => file.status === 'failed' && file.assertionResults.length === 0,
)
const passed = report.numPassedTests
const failed = report.numTotalTests - passed + unloaded.length
if (!(passed >= 0 && failed >= 0)) throw new Error(`${path} has no counts`)
console.log(`${passed} ${failed}`)
