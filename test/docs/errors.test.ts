import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import * as writefence from 'writefence'
import {
  AttemptSupersededError,
  isRetryable,
  LeaseLostError,
  NotAppliedError,
  type RequestCode,
  RequestRefusedError,
  StoreUnavailableError,
  type VerdictCode,
  WritefenceError,
  WriteGuard,
  WriteRefusedError,
} from 'writefence'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'
import { requestCodes, verdictCodes } from '../../src/errors.ts'
import { type ProblemCode, problemHeaders, problemStatus } from '../../src/wire/problem.ts'
import { nodesOf, read } from '../house/project.ts'
import { section, spans, table } from './markdown.ts'

const ERRORS = 'docs/errors.md'
const job = { jobId: 'job', generation: 1 }

/** One row of a table of codes: code, status, retryable. */
function codesUnder(heading: string): unknown[] {
  return table(ERRORS, heading).map(([code, status, retryable, ...says]) => {
    expect(says.every((cell) => cell.length > 0)).toBe(true)
    return [...spans(code), Number(status), retryable]
  })
}

const row = (code: VerdictCode | RequestCode) => [
  code,
  problemStatus(code),
  isRetryable(code) ? 'yes' : 'no',
]

/** The texts of a union of string literals in src/errors.ts. */
function literalsOf(name: string): string[] {
  const path = 'src/errors.ts'
  const { nodes } = nodesOf({ path, text: read(path) })
  const alias = nodes.find((node) => ts.isTypeAliasDeclaration(node) && node.name.text === name)
  const literals: string[] = []
  alias?.forEachChild(function visit(node) {
    if (ts.isStringLiteral(node)) literals.push(node.text)
    node.forEachChild(visit)
  })
  return literals
}

describe('the tables of codes', () => {
  it('say of each verdict what the code says', () => {
    expect(codesUnder('### Verdicts')).toEqual(expect.arrayContaining(verdictCodes.map(row)))
    expect(codesUnder('### Verdicts')).toHaveLength(verdictCodes.length)
  })

  it('say of each request that is refused at the door what the code says', () => {
    const heading = '### Requests that never reach a verdict'
    expect(codesUnder(heading)).toEqual(expect.arrayContaining(requestCodes.map(row)))
    expect(codesUnder(heading)).toHaveLength(requestCodes.length)
  })

  it('say when a store that is unavailable may be asked again', async () => {
    const status = problemStatus('store_unavailable')
    expect(codesUnder('### The store')).toEqual([
      ['store_unavailable', status, 'with an operation id'],
    ])
    const guard = new WriteGuard(new SqliteFenceStore(openSqlite(':memory:')))
    await guard.close()
    const write = (operationId?: string) => guard.write({ token: job, operationId }, () => {})
    await expect(write('op')).rejects.toMatchObject({ code: 'store_unavailable', retryable: true })
    await expect(write()).rejects.toMatchObject({ code: 'store_unavailable', retryable: false })
  })

  it('are right that Retry-After comes with these two and no others', () => {
    expect(section(ERRORS, '### The store')).toMatch(
      /Its answers have `Retry-After`, as those of `in_flight` have, and no others/,
    )
    const waits = [
      ...verdictCodes.map((code) => new WriteRefusedError(code, job)),
      ...requestCodes.map((code) => new RequestRefusedError(code)),
      new StoreUnavailableError('closed'),
    ].filter((error) => 'Retry-After' in problemHeaders(error))
    expect(waits.map((error): ProblemCode => error.code)).toEqual([
      'in_flight',
      'store_unavailable',
    ])
  })

  it('agree with the one of the README, which has every verdict', () => {
    const rows = table('README.md', '## Verdicts').map(([code, status]) => [...spans(code), status])
    const codes: readonly ProblemCode[] = [...verdictCodes, 'store_unavailable']
    const refusals = codes.map((code) => [code, String(problemStatus(code))])
    expect(rows).toEqual(
      expect.arrayContaining([
        ['applied', 'yours'],
        ['replayed', 'as before'],
        ['passed', 'yours'],
        ...refusals,
      ]),
    )
    expect(rows).toHaveLength(refusals.length + 3)
  })
})

describe('the table of classes', () => {
  const rows = table(ERRORS, '## Classes').map(([name, code]) => [spans(name)[0], spans(code)[0]])

  it('has every error class that is exported, and no other', () => {
    const classes = Object.entries(writefence)
      .filter(([, value]) => typeof value === 'function')
      .filter(([, value]) => (value as { prototype: unknown }).prototype instanceof WritefenceError)
    expect(rows.map(([name]) => name).sort()).toEqual(classes.map(([name]) => name).sort())
  })

  it('gives each class its code', () => {
    const one = [
      new StoreUnavailableError('closed'),
      new LeaseLostError('expired', job),
      new AttemptSupersededError({ jobId: 'job', operationId: 'op' }),
      new NotAppliedError(),
    ].map((error) => [error.name, error.code])
    const several = ['WriteRefusedError', 'RequestRefusedError'].map((name) => [name, undefined])
    expect(rows).toEqual(expect.arrayContaining([...one, ...several]))
  })

  it('leaves no code of an error out', () => {
    const own = rows.flatMap(([, code]) => code ?? [])
    expect(own.sort()).toEqual(literalsOf('ErrorCode').sort())
  })
})

describe('the table of lost leases', () => {
  it('has every reason, and no other', () => {
    const rows = table(ERRORS, '## Why a lease is lost').flatMap(([reason]) => spans(reason))
    expect(rows.length).toBeGreaterThan(0)
    expect(rows.sort()).toEqual(literalsOf('LostReason').sort())
  })
})
