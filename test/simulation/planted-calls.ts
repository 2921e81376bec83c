/** The words that the planted histories are written in. */

import type { Answer, Applied, Invoke } from './history.ts'

export const jobId = 'job'

/** A call and its answer; the halves are apart where others come in between. */
export function call(
  name: string,
  asked: Omit<Invoke, 'event' | 'call' | 'jobId'>,
  told: Omit<Answer, 'event' | 'call'>,
): [Invoke, Answer] {
  return [
    { event: 'invoke', call: name, jobId, ...asked },
    { event: 'answer', call: name, ...told },
  ]
}

export const write = (name: string, generation: number, told: Omit<Answer, 'event' | 'call'>) =>
  call(name, { verb: 'write', generation, leaseId: `l${generation}`, operationId: 'op' }, told)
export const effect = (by: string, generation: number, operationId: string | undefined = 'op') =>
  ({ event: 'applied', jobId, generation, operationId, call: by }) satisfies Applied
export const applied = (generation: number) =>
  ({ outcome: 'applied', appliedGeneration: generation, highestGeneration: generation }) as const
export const claim = (name: string, generation: number, leaseId: string) =>
  call(name, { verb: 'claim', leaseId }, { outcome: 'claimed', generation, leaseId })
export const advance = (name: string, generation: number, leaseId = `l${generation}`) =>
  call(
    name,
    { verb: 'advance', generation, leaseId },
    { outcome: 'done', highestGeneration: generation },
  )
export const seal = (name: string, generation: number) =>
  call(
    name,
    { verb: 'seal', generation, leaseId: `l${generation}` },
    { outcome: 'done', highestGeneration: generation },
  )
export const stale = (highestGeneration: number) =>
  ({ outcome: 'refused', code: 'stale', highestGeneration }) as const
