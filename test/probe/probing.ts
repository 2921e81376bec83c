/** Probes a destination of this folder, with or without a look at its effects. */

import { type ProbeFinding, type ProbeOperation, probeDestination } from 'writefence/conformance'
import type { PlainDestination } from './plain-destination.ts'

export function write({ jobId, operationId, variant }: ProbeOperation) {
  return {
    path: '/credits',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ jobId, operationId, amount: variant }),
  }
}

export async function probed(
  destination: PlainDestination,
  effectsToo: boolean,
): Promise<ProbeFinding[]> {
  const baseUrl = await destination.listen()
  const effects = async (jobId: string) => destination.effects.get(jobId) ?? []
  try {
    return await probeDestination({
      baseUrl,
      write,
      restart: () => destination.restart(),
      effects: effectsToo ? effects : undefined,
      timeoutMs: 2000,
    })
  } finally {
    destination.close()
  }
}
