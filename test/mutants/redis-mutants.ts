/** Connections, keys and leases of Redis. */

import { type Mutant, mutantsOf } from './mutant.ts'
import { redisFenceMutants } from './redis-fence-mutants.ts'

const connections = [
  ...mutantsOf('src/storage/redis/redis-connection.ts', [
    ['what was given up may still land', '      this.#drop(session, error)\n', ''],
    [
      'a server that does not answer is waited for, for ever',
      '      this.#timeoutMs,\n      () =>',
      '      2 ** 30,\n      () =>',
    ],
    [
      'the old master is asked again after a failover',
      'isReply(error) && !isDemoted(error)',
      'isReply(error)',
    ],
    [
      'a connection that was lost is used again',
      '(!current.isOpen || current.link.isReady)',
      'current !== null',
    ],
    [
      'a connection that was lost is left as it is',
      'if (current !== undefined) this.#drop(current, undefined)',
      '',
    ],
    [
      'a server is not looked at',
      '    await this.#inspect((script, keys, args) => evaluate(link, script, keys, args))\n',
      '',
    ],
    ['a close cuts off what is under way', '    await Promise.allSettled(this.#running)\n', ''],
    [
      'a server that forgot the scripts is down',
      "if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error",
      'throw error',
    ],
  ]),
  ...mutantsOf('src/storage/redis/redis-database.ts', [
    ['by ioredis what was sent is sent again', '    retryStrategy: null,\n', ''],
    [
      'by node-redis what waits is sent after its caller gave up',
      ', reconnectStrategy: false }',
      ' }',
    ],
    ['a prefix of the client moves the fences', "keyPrefix: '' }", '}'],
    ['a sentinel that sends again is taken', "&& !('acquire' in client)", ''],
  ]),
  ...mutantsOf('src/storage/redis/redis-schema.ts', [
    [
      'a server that was flushed is taken for a new one',
      `if found ~= '\${VERSION}' then`,
      `if found and found ~= '\${VERSION}' then`,
    ],
    ['keys of any version are good', `if found ~= '\${VERSION}' then`, 'if not found then'],
    ['setting up makes other versions its own', `'\${VERSION}', 'NX')`, `'\${VERSION}')`],
    [
      'keys of a prefix are in many slots',
      `return \`{\${this.#prefix}}\``,
      `return \`\${this.#prefix}\``,
    ],
    [
      'the clock of the server has seconds',
      'time[1] * 1000 + math.floor(time[2] / 1000)',
      'time[1] * 1000',
    ],
    ['a commit may land after its caller gave up', '0.9 * this.timeoutMs', '1.9 * this.timeoutMs'],
    [
      'a deadline does not count what has passed since',
      'clock + performance.now() - seenAt + 0.9',
      'clock + 0.9',
    ],
    ['a server may evict fences', "if (policy.startsWith('allkeys')) {", 'if (false) {'],
  ]),
]

const leases = [
  ...mutantsOf('src/storage/redis/redis-lease-statements.ts', [
    [
      'a lease is put whatever it has become',
      "if (redis.call('GET', KEYS[i + 3]) or '') == seen then",
      'if seen then',
    ],
    ['a lease may be put too late', 'if clock >= tonumber(ARGV[1]) then return 0 end\n', ''],
    [
      'a process claims by its own clock',
      'now: this.#now?.() ?? clock, clock }',
      'now: this.#now?.() ?? Date.now(), clock }',
    ],
    [
      'what was claimed again is pruned as ended',
      "or { 'ZREM', KEYS[3], id }",
      "or { 'ZCARD', KEYS[3] }",
    ],
    [
      'tombstones are listed',
      "const isListed = row.status === 'leased' || endedAt !== undefined",
      'const isListed = true',
    ],
    [
      'pruning takes what ended a moment too late',
      "string.format('%.0f', now - ARGV[2])\nreturn",
      "'(' .. string.format('%.0f', now - ARGV[2])\nreturn",
    ],
  ]),
  ...mutantsOf('src/storage/redis/redis-lease-store.ts', [
    [
      'a claim that lost is answered as won',
      '=== 0) throw new JobChanged()',
      '< 0) throw new JobChanged()',
    ],
    [
      'a lease that is over is given out',
      'Math.min(this.#space.deadline(clock, seenAt), over)',
      'this.#space.deadline(clock, seenAt)',
    ],
    [
      'a claim may land after its caller gave up',
      'Math.min(this.#space.deadline(clock, seenAt), over)',
      'over',
    ],
    [
      'pruning buries a lease that was claimed meanwhile',
      " || row.status === 'leased') return []",
      ') return []',
    ],
    [
      'pruning forgets generations',
      '{ ...row, owner: undefined',
      '{ ...row, generation: 0, owner: undefined',
    ],
    ['a list ends with its first page', 'after = ids.at(-1)', 'return found'],
  ]),
]

export const redisMutants: readonly Mutant[] = [...redisFenceMutants, ...connections, ...leases]
