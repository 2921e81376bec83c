/** A small world: who is in it, what they do, and what may go wrong. */

import type { LeaseStore } from 'writefence'
import type { Faults } from './agenda.ts'
import type { Store } from './databases.ts'
import type { Desk } from './destination-host.ts'
import type { RealScript } from './real-worker.ts'
import type { Script } from './script-worker.ts'
import type { Gate } from './site.ts'
import type { Clock } from './virtual-host.ts'

export interface TimeStep {
  readonly name: string
  /** Milliseconds that pass for everybody. */
  readonly elapsesMs?: number | undefined
  /** Which wall clocks are set, and by how many milliseconds. */
  readonly moves?: Readonly<Record<string, number>> | undefined
  readonly times: number
}

export interface Plan {
  readonly name: string
  readonly workers?: readonly Script[] | undefined
  /** Workers that run `runWithLease`. */
  readonly real?: readonly RealScript[] | undefined
  readonly destinations: readonly string[]
  readonly faults?: Faults | undefined
  readonly time?: readonly TimeStep[] | undefined
  /** How many of those steps are taken in all; as many as there are unless told. */
  readonly timeAtMost?: number | undefined
  readonly gate?: Gate | undefined
  /** Two requests to one destination may arrive in the same turn of its event loop. */
  readonly together?: boolean | undefined
  readonly effects?: Desk['effects'] | undefined
  /** The third system does each operation once, whoever asks. */
  readonly deduplicates?: boolean | undefined
  /** Generations come from elsewhere too, so that an operator may have to raise. */
  readonly foreign?: boolean | undefined
  /** Effects of older operations past their deadline are not waited for: no order is promised. */
  readonly unordered?: boolean | undefined
  /** Clocks that begin wrong, or run at a rate of their own. */
  readonly clocks?: Readonly<Record<string, Clock>> | undefined
  readonly broken?: ((store: Store) => Store) | undefined
  /** What it has less of where there is little time: see the exploration's `--short`. */
  readonly short?: Partial<Plan> | undefined
  readonly brokenLeases?: ((store: LeaseStore) => LeaseStore) | undefined
}
