/** All mutants, and the tests that are to kill them. */

import { guardMutants } from './guard-mutants.ts'
import { httpMutants } from './http-mutants.ts'
import { leaseMutants } from './lease-mutants.ts'
import type { Mutant } from './mutant.ts'
import { mysqlMutants } from './mysql-mutants.ts'
import { postgresMutants } from './postgres-mutants.ts'
import { redisMutants } from './redis-mutants.ts'
import { sqliteMutants } from './sqlite-mutants.ts'
import { storageMutants } from './storage-mutants.ts'
import { verdictMutants } from './verdict-mutants.ts'

export const mutants: readonly Mutant[] = [
  ...verdictMutants,
  ...guardMutants,
  ...leaseMutants,
  ...httpMutants,
  ...sqliteMutants,
  ...storageMutants,
  ...postgresMutants,
  ...mysqlMutants,
  ...redisMutants,
]

const on = (engine: string, ...names: readonly string[]) =>
  names.map((name) => `test/engines/${engine}${name}`)
const onPostgres = (...names: readonly string[]) => on('postgres', ...names)
const onMysql = (...names: readonly string[]) => on('mysql', ...names)
const onRedis = (...names: readonly string[]) => on('redis', ...names)
const LAWS = '.test'

/**
 * The tests of a file of the sources, those that are closest to it first: a mutant that the first
 * few kill costs no run of the others.
 */
const TESTS: readonly (readonly [of: RegExp, ...tests: readonly (readonly string[])[]])[] = [
  [/^src\/guard\/verdict/, ['test/guard/verdict', 'test/conformance/fence-store.sqlite']],
  [/^src\/guard\/settle/, ['test/guard/settle', 'test/conformance/fence-store.sqlite']],
  [
    /^src\/guard\//,
    ['test/conformance/fence-store.sqlite'],
    ['test/guard/'],
    ['test/storage/sqlite/'],
  ],
  [/^src\/token/, ['test/wire/', 'test/conformance/fence-store.sqlite']],
  [/^src\/lease\/lease-rules/, ['test/conformance/lease-store.sqlite']],
  [/^src\/lease\//, ['test/lease/']],
  [/^src\/http\/(fence|lease)-service/, ['test/express/fence-routes', 'test/express/lease-routes']],
  [/^src\/(express|http)\//, ['test/http/', 'test/express/']],
  [/^src\/wire\//, ['test/wire/'], ['test/express/']],
  [/^src\/storage\/(job-turns|retry|turns)/, ['test/storage/retry', 'turns.test']],
  [/^src\/storage\/ruled/, onPostgres(LAWS)],
  [
    /postgres-lease/,
    onPostgres('-waiting', '-session', '-undone', '-partitioned'),
    onPostgres(LAWS),
  ],
  [/postgres-schema/, onPostgres('-schema'), ['test/storage/postgres/']],
  [
    /postgres-transactions/,
    ['test/storage/postgres/', ...onPostgres('-waiting', '-session', '-effect')],
    onPostgres('-connection', '-schema'),
  ],
  [
    /postgres\//,
    onPostgres('-waiting', '-effect', '-within'),
    onPostgres('-partitioned', '-plans', '-undone'),
    onPostgres(LAWS),
  ],
  [/mysql-lease/, onMysql('-waiting'), onMysql(LAWS)],
  [/mysql-(tables|schema)/, onMysql('-schema', '-waiting')],
  [/mysql-(transactions|session)/, onMysql('-options', '-undone', '-waiting'), onMysql('-faults')],
  [/mysql\//, onMysql('-waiting', '-effects', '-nested'), onMysql(LAWS), onMysql('-faults')],
  [/redis-units/, ['test/storage/redis/']],
  [/redis-lease/, onRedis('-records', '-faults'), onRedis(LAWS)],
  [/redis-connection/, ['test/storage/redis/'], onRedis('-clients', '-faults'), onRedis('-loss')],
  [/redis-(database|schema)/, onRedis('-clients', '-faults'), onRedis('-loss')],
  [/redis\//, onRedis('-write', '-records'), onRedis(LAWS), onRedis('-faults')],
  [/lease/, ['test/conformance/lease-store.sqlite', 'test/storage/sqlite/lease-store']],
  [/group-commit/, ['test/storage/sqlite/']],
  [/fence-(sql|statements)/, ['test/conformance/fence-store.sqlite']],
  [/./, ['test/storage/sqlite/'], ['test/conformance/fence-store.sqlite', 'test/guard/']],
]

/** Where the tests that are close let a mutant live: all that hang on what it changes. */
const FAR: readonly (readonly [of: RegExp, ...tests: readonly (readonly string[])[]])[] = [
  [
    /postgres/,
    onPostgres('-isolation'),
    onPostgres('-connection'),
    onPostgres('-session', '-schema', '-waiting', '-effect', '-within', '-plans', '-partitioned'),
  ],
  [
    /mysql/,
    onMysql('-isolation'),
    onMysql('-faults'),
    onMysql('-options', '-schema', '-waiting', '-effects', '-nested', '-plans', '-processes'),
  ],
  [/redis/, onRedis('-write', '-records', '-clients', '-faults'), onRedis('-loss', '-cluster')],
  [
    /lease/,
    ['test/lease/', 'test/storage/http/', 'test/express/lease-routes', 'test/processes/leases'],
  ],
  [
    /^src\/(express|http|wire)\//,
    ['test/http/', 'test/wire/', 'test/express/', 'test/storage/http/'],
  ],
  [
    /./,
    [
      'test/conformance/',
      'test/guard/',
      'test/storage/sqlite/',
      'test/express/',
      'test/processes/sqlite',
    ],
  ],
]

/** Groups of test files to run one after the other, until one kills the mutant. */
export function testsOf({ file }: Mutant): readonly (readonly string[])[] {
  const [, ...close] = TESTS.find(([of]) => of.test(file)) ?? [/./]
  const [, ...far] = FAR.find(([of]) => of.test(file)) ?? [/./]
  return [...close, ...far]
}

/** Whose server its tests need; `undefined` where they need none. */
export function engineOf(mutant: Mutant): string | undefined {
  const engines = testsOf(mutant)
    .flat()
    .map((name) => /^test\/engines\/([a-z]+)/.exec(name)?.[1])
  return engines.find((engine) => engine !== undefined)
}

/** How often a mutant's text occurs in what it changes; anything but once is a stale mutant. */
export function occurrences({ find }: Mutant, text: string): number {
  return text.split(find).length - 1
}
