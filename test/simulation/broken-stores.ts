/**
 * Stores with the faults that guards of one's own have, each around the real one. An exploration
 * that finds nothing wrong with them finds nothing.
 */

import type { Fence, JobView, Step, Unit } from 'writefence'
import type { Store } from './databases.ts'

export interface BrokenStore {
  readonly name: string
  /** A world that shows it. */
  readonly world: string
  readonly broken: (real: Store) => Store
}

/** The unit with another step; everything else goes on as it does. */
type Bend = <A>(step: (view: JobView) => Step<A>, view: JobView, job: string) => Step<A>

function bent(bend: Bend): (real: Store) => Store {
  return (real) => ({
    ...real,
    transact: <A, R>(unit: Unit<unknown, 'async', A, R>) => {
      const job = JSON.stringify(unit.job)
      const asked = (view: JobView) => unit.step(view)
      return real.transact({ ...unit, step: (view) => bend(asked, view, job) })
    },
  })
}

/** `token.generation !== fence.generation` in place of an order: any other token takes over. */
const unequal = bent((step, view) => {
  const answer = step(view)
  return isStale(answer) ? step({ ...view, fence: undefined }) : answer
})

/** `token.generation <= fence.generation` is refused: the holder's own second write, too. */
const notAbove = bent((step, view) => {
  const taken = step(view)
  const repeated = taken.action.kind !== 'none' && taken.fence === undefined
  const above = view.fence && { ...view.fence, generation: view.fence.generation + 1 }
  return repeated && view.fence !== undefined ? step({ ...view, fence: above }) : taken
})

/** No record is kept of what was done. */
const noRecords = bent((step, view) => step({ ...view, operation: undefined }))

/** Newer generations go on although older operations are under way. */
const noWaiting = bent((step, view) => step({ ...view, pending: {} }))

/** A seal is written, and never looked at. */
const noSeal = bent((step, view) => {
  const { fence } = view
  return step({ ...view, fence: fence && { ...fence, sealed: false } })
})

/** Whoever comes with the fence's own generation is its holder. */
const anyHolder = bent((step, view) => {
  const { fence } = view
  return step({ ...view, fence: fence && { ...fence, holder: { kind: 'unbound' } } })
})

/** An attempt settles whatever attempt is under way now. */
function anyAttempt(real: Store): Store {
  const begun = new Set<string>()
  const guess: Bend = (step, view) => {
    const answer = step(view)
    const put = answer.action.kind === 'put' ? answer.action.operation : undefined
    if (put?.status === 'in_flight') begun.add(put.attemptId)
    const { operation } = view
    if (operation === undefined || operation.status === 'applied' || !isUnsettled(answer)) {
      return answer
    }
    const tries = [...begun].map((attemptId) =>
      step({ ...view, operation: { ...operation, attemptId } }),
    )
    return tries.find((each) => !isUnsettled(each)) ?? answer
  }
  return bent(guess)(real)
}

/** The fence is looked up where that is quick, and forgotten with the process. */
function inMemory(real: Store): Store {
  const fences = new Map<string, Fence>()
  const remember: Bend = (step, view, job) => {
    const answer = step({ ...view, fence: fences.get(job) })
    if (answer.fence !== undefined) fences.set(job, answer.fence)
    return answer
  }
  return bent(remember)(real)
}

/** The fence is part of the effect's transaction, and goes when that one does. */
function rolledBack(real: Store): Store {
  return {
    ...real,
    transact: async <A, R>(unit: Unit<unknown, 'async', A, R>) => {
      let before: Fence | undefined
      const done = await real.transact({
        ...unit,
        step: (view) => {
          before = view.fence
          return unit.step(view)
        },
      })
      if (done.effect?.status === 'threw' && before !== undefined) {
        const fence = before
        const undo = { answer: undefined, fence, action: { kind: 'none' } } as const
        await real.transact({ job: unit.job, insideTransaction: 'wait', step: () => undo })
      }
      return done
    },
  }
}

/** Reads, decides, and writes later: whatever has come in between is overwritten. */
function checkThenWrite(real: Store): Store {
  return {
    ...real,
    transact: async <A, R>(unit: Unit<unknown, 'async', A, R>) => {
      const step = unit.step(await real.view(unit.job, unit.operationId))
      return real.transact({ ...unit, step: () => step })
    },
  }
}

/** Each with a world that shows it. */
export const brokenStores: readonly BrokenStore[] = [
  { name: 'compares with !=', world: 'two generations write and retry', broken: unequal },
  { name: 'compares with <=', world: 'two generations write and retry', broken: notAbove },
  { name: 'keeps no records', world: 'two generations write and retry', broken: noRecords },
  { name: 'keeps the fence in memory', world: 'two generations write and retry', broken: inMemory },
  {
    name: 'checks, then writes',
    world: 'writes of one turn share a transaction',
    broken: checkThenWrite,
  },
  {
    name: 'rolls the fence back with the effect',
    world: 'effects that throw inside the transaction',
    broken: rolledBack,
  },
  {
    name: 'does not look at the seal',
    world: 'a job is sealed, and reopened by an operator',
    broken: noSeal,
  },
  {
    name: 'does not look at the holder',
    world: 'two holders of one generation',
    broken: anyHolder,
  },
  {
    name: 'does not wait for older operations',
    world: 'effects elsewhere, and a take-over that does not wait',
    broken: noWaiting,
  },
  {
    name: 'settles without compare-and-set',
    world: 'the next attempt finds out what became of the last',
    broken: anyAttempt,
  },
]

function isStale({ answer }: Step<unknown>): boolean {
  const { verdict, code } = answer as { verdict?: { code?: string }; code?: string }
  return (verdict?.code ?? code) === 'stale'
}

function isUnsettled({ answer }: Step<unknown>): boolean {
  return (answer as { settled?: boolean }).settled === false
}
