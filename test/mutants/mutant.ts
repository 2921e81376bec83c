/** A slip that somebody could make in the protocol, as a change of one place in the sources. */
export interface Mutant {
  readonly file: string
  /** What the protocol loses by it. */
  readonly what: string
  /** Occurs exactly once in the file. */
  readonly find: string
  readonly replace: string
}

type Slip = readonly [what: string, find: string, replace: string]

/** The mutants of one file. */
export function mutantsOf(file: string, slips: readonly Slip[]): Mutant[] {
  return slips.map(([what, find, replace]) => ({ file, what, find, replace }))
}
