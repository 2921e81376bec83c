/** What the processes of the demo have in common. */

/** What the job credits is 100, 20 and 3: every sum tells which of them it is made of. */
export const JOB_ID = 'import-42'

/** How long worker A's lease lasts without renewal, in milliseconds. */
export const TTL_MS = 2_500

/** One step of a process, told to the main one. */
export interface Report {
  readonly answer: string
  /** The generation of the worker's lease, once it has one. */
  readonly generation?: number | undefined
}
