/** What engines have in common: the verbs of a lease store, retries, and turns. */

import { type Mutant, mutantsOf } from './mutant.ts'

export const storageMutants: readonly Mutant[] = [
  ...mutantsOf('src/storage/ruled-lease-store.ts', [
    ['a leaseId can be guessed', 'leaseId = newLeaseId()', "leaseId = 'lease'"],
    [
      'that generations have run out is an answer',
      '    if (answer instanceof Error) throw answer\n',
      '',
    ],
    [
      'a repeated claim is another one',
      'claimRule(row, { jobId, owner, ttlMs }, leaseId, now)',
      'claimRule(row, { jobId, owner, ttlMs }, newLeaseId(), now)',
    ],
    [
      'a ttl is not looked at',
      'const { ttlMs, ...key } = checkRenewal(lease)',
      'const { ttlMs, ...key } = lease',
    ],
    ['releasing completes', 'releaseRule(row, key, now)', 'completeRule(row, key, now)'],
    [
      'a generation to raise to is not looked at',
      'const above = checkAtLeast(atLeast)',
      'const above = atLeast',
    ],
    [
      'an id to release by force is not looked at',
      "this.change(checkId('jobId', jobId), forceReleaseRule)",
      'this.change(jobId, forceReleaseRule)',
    ],
  ]),
  ...mutantsOf('src/storage/retry.ts', [
    [
      'whatever failed is run again',
      'if (last || !isUndone(error)) throw error',
      'if (last) throw error',
    ],
    [
      'what was undone is not run again',
      'if (last || !isUndone(error)) throw error',
      'throw error',
    ],
    ['no run knows that it is the last one', 'return await run(last)', 'return await run(false)'],
    ['there is a run more than was asked for', 'attempt === attempts', 'attempt > attempts'],
  ]),
  ...mutantsOf('src/storage/job-turns.ts', [
    ['a job has one turn for all scopes', `\`\${scope}\\n\${jobId}\``, 'jobId'],
    ['nobody is at the database when the lock is free', 'AT_ONCE = 2', 'AT_ONCE = 1'],
    [
      'who hangs keeps his turn',
      'const timer = setTimeout(pass, this.#longestTurnMs)',
      'const timer = undefined',
    ],
    ['who failed keeps his turn', '      clearTimeout(timer)\n      pass()\n', '\n'],
    ['a turn that was lost is passed on twice', '      if (passed) return\n', ''],
    [
      'a turn goes to who was withdrawn',
      '        line.waiting.splice(line.waiting.indexOf(next), 1)\n',
      '',
    ],
    [
      'a turn is waited for, for ever',
      'const timer = setTimeout(tooLate, this.#maxWaitMs)',
      'const timer = undefined',
    ],
    ['a wait does not count', 'this.#maxWaitMs - (performance.now() - began)', 'this.#maxWaitMs'],
  ]),
  ...mutantsOf('src/storage/turns.ts', [
    ['units on one transaction interleave', 'lane.last.then(()', 'Promise.resolve().then(()'],
    ['after a unit that failed all fail', 'turn.catch(() => {})', 'turn'],
    [
      'that a unit waits for itself is not told',
      'setTimeout(warn, this.#longMs)',
      'setTimeout(() => {})',
    ],
    ['a unit that runs for long is told of', '      clearTimeout(timer)\n', ''],
    [
      'stores do not know of the effects of each other',
      '.filter((lane) => lane.tx === tx)',
      '.slice(0, 1)',
    ],
    [
      'an effect ends before what it has started',
      'last !== lane.last; await last',
      'last === lane; await last',
    ],
    ['an effect that has ended goes on', '      lane.over = true\n', ''],
    [
      'a unit that an effect starts waits for that effect',
      'if (lane.tx === tx) return lane',
      'if (lane === tx) return lane',
    ],
    [
      'an effect within an effect on another transaction waits for itself',
      'lane !== undefined; lane = lane.outer',
      'lane !== undefined; lane = undefined',
    ],
    ['each unit has a lane of its own', '    lanes.set(tx, lane)\n', ''],
  ]),
]
