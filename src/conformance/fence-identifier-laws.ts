/** Identifiers are compared exactly, and generations in their order (design: identifiers). */

import assert from 'node:assert/strict'
import { MAX_GENERATION } from '../token.ts'
import { failure, intent, law, refused } from './fence-destination.ts'
import type { FenceStoreLaw } from './fence-store-context.ts'

/** No two of them are the same to an engine that compares code point by code point. */
const lookalikes = [
  ...['1', '01', '1.0', '1e0', 'a', 'A', 'a ', ' a', 'ä', 'a\u0308', 'Ä', 'ß', 'ss', 'ſs'],
  ...['\u212b', '\u00c5', 'K', '\u212a', 'ﬁ', 'fi', 'i', 'ı', 'İ', '٥', '5', 'a\u200b'],
  ...['a:b', 'a', 'b', ':b', 'a/b', 'a%2Fb', 'a%', 'a_', "a'b", 'a"b', 'a\\b', 'null', 'NULL'],
  ...['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '-', '--', ';'],
  ...['🔑', '🔑'.repeat(255), `${'🔑'.repeat(254)}🔒`, 'x'.repeat(255), 'x'.repeat(254)],
  ...['\ue000', '\u{10000}', '\ufeff', '\u2028', '订单-1', 'é', 'e\u0301'],
].filter((id, index, all) => all.indexOf(id) === index)

export const fenceIdentifierLaws: readonly FenceStoreLaw[] = [
  law('R64, R68: jobs with like names have fences of their own', async (d) => {
    for (const [i, jobId] of lookalikes.entries()) {
      await d.applies(intent(i + 1, undefined, { jobId, leaseId: jobId }), jobId)
    }
    for (const [i, jobId] of lookalikes.entries()) {
      const state = await d.guard.inspect(jobId)
      assert.deepEqual([state?.jobId, state?.highestGeneration], [jobId, i + 1])
    }
    assert.deepEqual(await d.log(), lookalikes)
  }),

  law('R64, R68: operations with like names have records of their own', async (d) => {
    const write = (id: string) => d.guard.write(intent(1, id), d.appends(id, id))
    for (const id of lookalikes) assert.equal((await write(id)).status, 'applied')
    for (const id of lookalikes) {
      const again = await write(id)
      assert.deepEqual([again.status, again.result], ['replayed', id])
    }
  }),

  law('R64: scopes keep jobs of one name apart, and nothing is glued together', async (d) => {
    const scopes = ['', ...lookalikes]
    for (const [i, scope] of scopes.entries()) {
      await d.applies(intent(i + 1, 'x', { scope }), scope)
    }
    for (const [i, scope] of scopes.entries()) {
      const state = await d.guard.inspect('job', scope)
      assert.deepEqual([state?.scope, state?.highestGeneration], [scope, i + 1])
    }
    await d.applies(intent(9, 'x', { scope: 'p:q', jobId: 'r' }), 'p:q r')
    await d.applies(intent(2, 'x', { scope: 'p', jobId: 'q:r' }), 'p q:r')
  }),

  law('leases and requests with like names are different ones', async (d) => {
    const [first = '', ...others] = lookalikes
    await d.applies(intent(1, 'x', { leaseId: first, fingerprint: first }))
    for (const other of others) {
      const lease = intent(1, 'y', { leaseId: other })
      await refused(d.guard.write(lease, d.appends('second holder')), 'conflict')
      const request = intent(1, 'x', { leaseId: first, fingerprint: other })
      await refused(d.guard.write(request, d.appends('other request')), 'mismatch')
    }
  }),

  law('scopes are isolated: seals, operations, advances and reopenings', async (d) => {
    const [here, there] = ['here', 'there'].map((scope) => ({ scope })) as [
      { scope: string },
      { scope: string },
    ]
    const running = await d.begin(intent(3, 'x', here))
    await d.applies(intent(1, 'x', there))
    await d.guard.seal(intent(3).token, 'here')
    await d.applies(intent(2, 'y', there))
    await d.guard.reopen('job', 'here')
    await d.guard.advance(intent(2).token, 'there')
    running.finish('r')
    await running.outcome
    const operation = { jobId: 'job', operationId: 'x', ...here }
    const resolved = await d.guard.resolve(operation, { status: 'not_applied' })
    assert.equal(resolved.status, 'already_applied')
    assert.equal((await d.guard.inspect('job', 'here'))?.highestGeneration, 4)
    assert.equal((await d.guard.inspect('job', 'there'))?.sealed, false)
    assert.equal(await d.guard.inspect('job'), undefined)
  }),

  law('R58, R59: generations are ordered as numbers, up to the largest', async (d) => {
    const rising = [1, 9, 10, 99, 2 ** 31, 2 ** 32 + 1, 2 ** 40, MAX_GENERATION - 1, MAX_GENERATION]
    for (const [i, generation] of rising.entries()) {
      await d.applies(intent(generation, `op ${generation}`))
      const below = rising[i - 1]
      if (below === undefined) continue
      const late = d.guard.write(intent(below), d.appends('late'))
      await refused(late, 'stale', { highestGeneration: generation })
    }
    const replayed = await d.guard.write(
      intent(MAX_GENERATION, `op ${MAX_GENERATION - 1}`),
      d.appends('twice'),
    )
    assert.equal(replayed.appliedGeneration, MAX_GENERATION - 1)
  }),

  law('R58: what is no generation is refused before anything is read or changed', async (d) => {
    for (const generation of [0, -1, 1.5, Number.NaN, MAX_GENERATION + 1, 2 ** 53]) {
      const error = await failure(d.guard.write(intent(generation), d.appends('late')))
      assert.ok(error instanceof RangeError, String(error))
    }
    assert.equal(await d.guard.inspect('job'), undefined)
    assert.deepEqual(await d.log(), [])
  }),
]
