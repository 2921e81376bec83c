/** Scripts and records of the fences in Redis, and what a callback may do. */

import { type Mutant, mutantsOf } from './mutant.ts'

const scripts = mutantsOf('src/storage/redis/redis-fence-scripts.ts', [
  [
    'a commit does not look whether the job is as it was seen',
    "if (redis.call('HGET', KEYS[2], 'version') or '') ~= seen then return { 'changed' } end\n",
    '',
  ],
  [
    'a commit may come too late',
    "if clock >= tonumber(deadline) then return { 'changed' } end\n",
    '',
  ],
  [
    'a commit does not look whether reads still hold',
    '  if digest(run()) ~= known then',
    '  run()\n  if false then',
  ],
  ['a commit is not seen by others', "redis.call('HSET', KEYS[2], 'version', version)\n", ''],
  [
    'what is left of a partial failure has no record',
    "if recorded then put('unknown', begun) end\n",
    '',
  ],
  [
    'what is left of a partial failure is recorded as applied',
    "if recorded then put('unknown', begun) end\n",
    "if recorded then put('applied', record) end\n",
  ],
  [
    'a first command that fails leaves an unknown operation',
    '    if recorded and i == 1 then forget() end\n',
    '',
  ],
  ['a partial failure may be tried again', 'if recorded and i == 1 then', 'if recorded then'],
  [
    'a command that fails ends the script in the middle',
    'redis.pcall(unpack(command))',
    'redis.call(unpack(command))',
  ],
  [
    'the record of an effect is not put',
    `end
if recorded then put('applied', record) end`,
    'end',
  ],
  ['what has ended stays in flight', "  redis.call('HDEL', KEYS[3], operation)\n", ''],
  ['what has ended stays unknown', "  redis.call('HDEL', KEYS[4], operation)\n", ''],
  ['what has ended stays in the index', "  redis.call('ZREM', KEYS[6], member)\n", ''],
  [
    'what is unsettled is in no order',
    "'ZADD', KEYS[6], generation, member",
    "'ZADD', KEYS[6], 0, member",
  ],
  [
    'what is read may write',
    "return { digest(reply), reply }`,\n  ' flags=no-writes',",
    'return { digest(reply), reply }`,',
  ],
  ['pruning takes what was applied anew', 'and tonumber(score) <= tonumber(ARGV[1])', ''],
  [
    'records of jobs that are open go with those of sealed ones',
    "if due and (ARGV[2] == '' or redis.call('HGET', fence, 'sealed') == '1') then",
    'if due then',
  ],
  [
    'pruning takes fences',
    "    redis.call('HDEL', applied, operation)\n",
    "    redis.call('DEL', applied, fence)\n",
  ],
])

const fences = [
  ...mutantsOf('src/storage/redis/redis-fence-statements.ts', [
    [
      'a process decides by its own clock what is overdue',
      'census, this.#now?.())',
      'census, this.#now?.() ?? Date.now())',
    ],
    [
      'a process dates its records by its own clock',
      "      this.#now?.() ?? '',\n      operationId",
      '      this.#now?.() ?? Date.now(),\n      operationId',
    ],
    ['every version of a job is the same', '      randomUUID(),\n', "      '1',\n"],
    [
      'what has just become overdue is listed as in flight',
      'Number.parseInt(inFlight, 10) <= now',
      'Number.parseInt(inFlight, 10) < now',
    ],
    [
      'a list has what was settled while it was read',
      '      if (inFlight === null && unknown === 0) return undefined\n',
      '',
    ],
    [
      'a read that fails is an empty one',
      "    if (digest === 'error') throw",
      "    if (digest === '') throw",
    ],
    ['the wrong command is told to have failed', 'index: place - 1', 'index: place'],
  ]),
  ...mutantsOf('src/storage/redis/redis-fence-records.ts', [
    ['one scope for all tenants', 'JSON.stringify([scope, jobId])', "JSON.stringify(['', jobId])"],
    [
      'an operation holds itself back',
      'pendingOf(running.filter(({ id }) => id !== operationId))',
      'pendingOf(running)',
    ],
    [
      'the newest of the older operations is named',
      'Number.POSITIVE_INFINITY\n    if (generation < lowest)',
      '0\n    if (generation > lowest)',
    ],
    [
      'what has just become overdue is in flight',
      'const overdue = remainingMs === 0',
      'const overdue = remainingMs < 0',
    ],
    ['a seal is not kept', 'sealed ? 1 : 0]', '0]'],
  ]),
  ...mutantsOf('src/storage/redis/redis-fence-store.ts', [
    [
      'a commit that did nothing is taken for done',
      "      if (committed.status === 'changed') throw new JobChanged()\n",
      '',
    ],
    [
      'an effect that throws takes the fence with it',
      'if (fence !== undefined || reads.length > 0) {',
      'if (reads.length > 0) {',
    ],
    [
      'an error counts though what led to it has changed',
      'if (fence !== undefined || reads.length > 0) {',
      'if (fence !== undefined) {',
    ],
    [
      'a partial failure says that nothing happened',
      'if (committed.index === 0) return',
      'if (committed.index >= 0) return',
    ],
    [
      'a partial failure is taken for done',
      "if (committed.status !== 'failed') return",
      "if (committed.status !== 'changed') return",
    ],
    [
      'a write that is only reported overwrites the record',
      'const operationId = unrecorded ? undefined : unit.operationId',
      'const operationId = unit.operationId',
    ],
    ['a callback may go on after its end', '    tx.end()\n', '\n'],
    [
      'units of one job hinder each other',
      'this.#units.run(unit.job, () => this.#attempt(unit))',
      'this.#attempt(unit)',
    ],
    [
      'pruning stops at what it spares',
      'offset += batch.looked - batch.pruned',
      'if (batch.pruned === 0) break',
    ],
    [
      'a list ends with its first page',
      'if (page.length === 0) return found',
      'if (page.length === 0 || from > 0) return found',
    ],
  ]),
  ...mutantsOf('src/storage/redis/redis-transaction.ts', [
    [
      'a callback may flush the fences',
      '  if (FORBIDDEN.test(command)) throw',
      '  if (false) throw',
    ],
    [
      'what is written to a buffer later is committed',
      'return Buffer.from(value)',
      'return value as Buffer',
    ],
  ]),
  ...mutantsOf('src/storage/redis/redis-units.ts', [
    ['a job that has changed is the end', 'return error instanceof JobChanged', 'return false'],
    ['those of one job run side by side', 'atOnce: 1', 'atOnce: 2'],
  ]),
]

export const redisFenceMutants: readonly Mutant[] = [...scripts, ...fences]
