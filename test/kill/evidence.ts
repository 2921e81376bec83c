/** What a run adds to its history: members that the checker passes over, and the run judges. */

import type { Answer, Applied } from '../simulation/history.ts'

/** An effect, and the nonce of the very run that brought it about. */
export interface Traced extends Applied {
  readonly nonce: string
}

/** An answer, and the status that it came with. */
export interface WireAnswer extends Answer {
  readonly httpStatus?: number | undefined
}
