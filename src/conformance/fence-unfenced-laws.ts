/** Writes that bear no token, while a job has no fence yet: kept as any other, and not recorded. */

import assert from 'node:assert/strict'
import { RequestRefusedError } from '../errors.ts'
import { writeUnfenced } from '../guard/unfenced.ts'
import { type Destination, failure, intent, law } from './fence-destination.ts'
import type { FenceStoreLaw } from './fence-store-context.ts'

const job = { scope: '', jobId: 'job' }

function unfenced(d: Destination, text: string, evenIfFenced = false): Promise<unknown> {
  return writeUnfenced(d.guard, job, d.appends(text, text), { evenIfFenced })
}

export const fenceUnfencedLaws: readonly FenceStoreLaw[] = [
  law('a write without a token is kept where the job has no fence, and makes none', async (d) => {
    assert.equal(await unfenced(d, 'one'), 'one')
    assert.equal(await unfenced(d, 'two'), 'two')
    await d.reopenStore()
    assert.deepEqual(await d.log(), ['one', 'two'])
    assert.equal(await d.guard.inspect('job'), undefined)
    await d.applies(intent(1, 'x'), 'fenced')
    assert.deepEqual(await d.log(), ['one', 'two', 'fenced'])
  }),

  law('a write without a token is refused once the job has a fence', async (d) => {
    await d.applies(intent(3, 'x'), 'fenced')
    const error = await failure(unfenced(d, 'late'))
    assert.ok(error instanceof RequestRefusedError)
    assert.equal(error.code, 'token_required')
    assert.deepEqual(await d.log(), ['fenced'])
  }),

  law('a write without a token that is let in beside a fence does not move it', async (d) => {
    await d.applies(intent(3, 'x'), 'fenced')
    const state = await d.guard.inspect('job')
    assert.equal(await unfenced(d, 'beside', true), 'beside')
    assert.deepEqual(await d.log(), ['fenced', 'beside'])
    assert.deepEqual(await d.guard.inspect('job'), state)
  }),

  law('a write without a token that throws is undone', async (d) => {
    const boom = new Error('boom')
    const throwing = d.throws('half', boom)
    const call = writeUnfenced(d.guard, job, throwing, { evenIfFenced: false })
    assert.equal(await failure(call), boom)
    assert.deepEqual(await d.log(), [])
    assert.equal(await d.guard.inspect('job'), undefined)
  }),
]
