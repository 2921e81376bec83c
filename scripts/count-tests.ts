/**
 * Prints `<passed> <failed>` of a vitest JSON report, the one argument, and then each test that has
 * not passed on a line of its own.
 *
 * A file that could not be loaded has no tests to count: it counts as one that failed. A test that
 * did not run counts as failed too, so that nothing is green because it was left out.
 */

import { readFileSync } from 'node:fs'

interface Report {
  readonly numPassedTests: number
  readonly numTotalTests: number
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[]
  }[]
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
for (const { name } of unloaded) console.log(`${name} could not be loaded`)
for (const { name, assertionResults } of report.testResults) {
  for (const { status, fullName } of assertionResults) {
    if (status !== 'passed') console.log(`${name}: ${fullName} (${status})`)
  }
}
