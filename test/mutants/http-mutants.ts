/** How tokens and ids are read, who is let in, and what is answered. */

import { type Mutant, mutantsOf } from './mutant.ts'

const gate = mutantsOf('src/http/gate.ts', [
  ['tokens are not verified', 'if (verifyToken !== undefined) {', 'if (false) {'],
  [
    'a safe request is not fenced beside a guarded handler',
    "if (protect === 'handler' && !safe) return { intent, unsafe: true }",
    "if (protect === 'handler') return { intent, unsafe: !safe }",
  ],
  [
    'the door does not look at the fence',
    'highestGeneration: await this.#advance(intent) }',
    'highestGeneration: undefined }',
  ],
  [
    'who has no token is let in once the job has a fence',
    'if ((await this.#guard.inspect(jobId, job?.scope)) !== undefined) throw refusal\n',
    '',
  ],
  [
    'who has no token is let in',
    "if (this.#settings.mode !== 'once-fenced') throw new RequestRefusedError('token_required')",
    "if (this.#settings.mode !== 'once-fenced') return this.#pass()",
  ],
  ['an operation id is not needed', 'if (this.#settings.requireOperationId)', 'if (false)'],
  ['requests have no fingerprint', 'return { ...known, fingerprint: digest() }', 'return known'],
  [
    'one scope for all tenants',
    'const scope = await scopeOf(this.#settings.scope, exchange.request)',
    "const scope = ''",
  ],
  ['the door fails open', '(down && this.#guard.failsOpen)', 'down'],
])

const http = [
  ...mutantsOf('src/http/identify.ts', [
    [
      'a token for another job is let in',
      'if (sent.jobId !== undefined && sent.jobId !== jobId) {',
      'if (false) {',
    ],
    ['the token names the job, not the route', 'routeJob ?? sent.jobId', 'sent.jobId ?? routeJob'],
    [
      'who belongs to no scope shares one',
      "throw new RequestRefusedError('forbidden', 'the request belongs to no scope')",
      "return ''",
    ],
  ]),
  ...mutantsOf('src/http/protect-write.ts', [
    [
      'a success without a write is answered',
      'if (!success || fence.accounted || !fence.fenced) return undefined',
      'if (fence !== undefined || status > 0) return undefined',
    ],
  ]),
  ...mutantsOf('src/http/request-fence.ts', [
    [
      'a second write of a request is taken for the first',
      'if (id !== undefined && this.#taken.has(id)) {',
      'if (false) {',
    ],
    [
      'what is told of an effect need not be a function',
      "typeof onEnded === 'function' ? tells : onEnded",
      'tells',
    ],
    ['what an effect did that threw is not told', '        this.#verdict.ended(known, id)\n', ''],
  ]),
  ...mutantsOf('src/http/protect-handler.ts', [
    [
      'newer generations wait for the client of an older one',
      "  late.addEventListener('abort', () => hold.waitNoMore())\n",
      '',
    ],
    [
      'the handler of a request that is answered already is run',
      'if (exchange.isAnswered()) throw',
      'if (false) throw',
    ],
    [
      'a client error is recorded as done',
      "if (status < 400) return 'applied'",
      "if (status < 500) return 'applied'",
    ],
    ['503 proves nothing', 'if (status < 500 || status === 503)', 'if (status < 500)'],
    ['every error proves that nothing was done', "  return 'error'", "return 'not_applied'"],
    [
      'success is answered for what another attempt settled',
      'if (cause || error instanceof WriteRefusedError) {',
      'if (false) {',
    ],
  ]),
  ...mutantsOf('src/express/capture.ts', [
    [
      'a handler that fails in the middle of its answer stays in flight',
      '    if (this.#toldOfHead && error === undefined) this.#destroyed(undefined)\n',
      '',
    ],
    [
      'a server that closes ends the handlers that are at work',
      'if (this.#toldOfHead && error',
      'if (error',
    ],
    [
      'a network that fails ends a handler that is at work',
      'if (this.#toldOfHead && error === undefined) this',
      'if (this.#toldOfHead) this',
    ],
    [
      'the peer ends the handlers that have looked at their answer',
      `    process.nextTick(() => {
      this.#toldOfHead = false
    })
`,
      '',
    ],
  ]),
  ...mutantsOf('src/express/patience.ts', [
    ['a client that does not read is waited for', 'if (this.#isBehind) this.#onEnd()', ''],
    [
      'a client that falls behind after the deadline is waited for',
      `this.#onEnd()
    this.#isBehind = this.#res.writableNeedDrain`,
      'this.#onEnd()',
    ],
    ['a client that reads is cut at the deadline', 'if (this.#isBehind) this', 'this'],
    ['a client that has caught up is cut', '    this.#isBehind = false\n', ''],
    ['a client is watched for ever', '    clearInterval(this.#clock)\n', ''],
  ]),
  ...mutantsOf('src/http/recording.ts', [
    [
      'cookies are replayed',
      "'content-language', 'link']",
      "'content-language', 'link', 'set-cookie']",
    ],
  ]),
  ...mutantsOf('src/http/answer-verdict.ts', [
    [
      'an effect that nobody knows of is hidden by another write',
      "    if (this.#unknown.size > 0) return 'outcome_unknown'\n",
      '',
    ],
    ['report mode claims that it enforces', "this.#enforced ? known : { word: 'passed' }", 'known'],
    [
      'a write that runs on has passed',
      "this.#running > 0 && !isProblemCode(word) ? 'outcome_unknown' : word",
      'word',
    ],
  ]),
  ...mutantsOf('src/http/fence-service.ts', [
    [
      'the service does not seal',
      "return verb === 'seal' ? guard.seal(token, scope) : guard.advance(token, scope)",
      'return guard.advance(token, scope)',
    ],
    ['anybody moves a fence', '      await authorize(request, { ...call, scope, token })\n', ''],
  ]),
  ...mutantsOf('src/http/lease-service.ts', [
    ['anybody calls the lease service', '      await authorize(request, call)\n', ''],
  ]),
]

const wire = [
  ...mutantsOf('src/wire/headers.ts', [
    [
      'other spellings are read',
      'return serializeItem(item) === text ? item : undefined',
      'return item',
    ],
    ['the first of two lines counts', 'if (lines.length > 1) throw', 'if (lines.length > 2) throw'],
    [
      'any number is a generation',
      'if (problem !== undefined) throw malformed(`the generation',
      "if (typeof generation !== 'number') throw malformed(`the generation",
    ],
  ]),
  ...mutantsOf('src/wire/fingerprint.ts', [
    ['the method does not count', '[method, target, mediaType', '[target, mediaType'],
    ['the target does not count', '[method, target, mediaType', '[method, mediaType'],
    ['the body does not count', '.update(bodyBytes(body, mediaType))', ''],
    ['the order of members counts', '    .sort(([a], [b]) => (a < b ? -1 : 1))\n', ''],
  ]),
  ...mutantsOf('src/wire/problem.ts', [
    [
      'who must wait is not told how long',
      "if (error.code !== 'in_flight') return undefined",
      "if (error.code !== 'store_unavailable') return undefined",
    ],
    ['stale may be tried again elsewhere', 'stale: [412,', 'stale: [503,'],
  ]),
]

export const httpMutants: readonly Mutant[] = [...gate, ...http, ...wire]
