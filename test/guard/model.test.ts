import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type Action, JOBS, ModelWorld, OPERATIONS } from './model-world.ts'

const job = fc.constantFrom(...JOBS)
const operation = fc.constantFrom(...OPERATIONS)
const call = fc.record({
  job,
  generation: fc.integer({ min: 1, max: 5 }),
  // Mostly one lease and one request, so that most calls are good ones.
  lease: fc.constantFrom('a', 'a', 'a', 'a', 'b'),
  operation: fc.option(operation, { nil: undefined, freq: 4 }),
  fingerprint: fc.constantFrom('f', 'f', 'f', 'f', 'g'),
})
const rarely = fc.integer({ min: 0, max: 5 }).map((n) => n === 5)

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('write' as const), call, throws: rarely }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('begin' as const),
      call,
      deadlineMs: fc.integer({ min: 1, max: 30 }),
      rerun: rarely,
      proceed: rarely,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      which: fc.nat(20),
      how: fc.constantFrom(
        'ok' as const,
        'ok' as const,
        'unknown' as const,
        'not_applied' as const,
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('advance' as const), call }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('seal' as const), call }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('reopen' as const), job }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('resolve' as const),
      job,
      operation,
      result: fc.constantFrom(undefined, 'found'),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('clock' as const),
      ms: fc.integer({ min: -20, max: 40 }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'restart' as const }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('prune' as const),
      olderThanMs: fc.integer({ min: 0, max: 40 }),
    }),
  },
)

/** I1 to I4, I6 and I8, over what the guard remembers and what took place. */
class Oracle {
  readonly #world: ModelWorld
  readonly #fences = new Map<string, { generation: number; holder: string | undefined }>()
  #seen = 0

  constructor(world: ModelWorld) {
    this.#world = world
  }

  check(): void {
    const { model, effects, unordered, pruned } = this.#world
    for (const [name, { generation, holder }] of model.fences) {
      const before = this.#fences.get(name)
      if (before !== undefined) {
        expect(generation).toBeGreaterThanOrEqual(before.generation)
        const bound = generation === before.generation && before.holder !== undefined
        if (bound) expect(holder).toBe(before.holder)
      }
      this.#fences.set(name, { generation, holder })
    }
    for (const { job: name, operation: id, generation } of effects.slice(this.#seen)) {
      const earlier = effects.slice(0, this.#seen).filter((each) => each.job === name)
      this.#seen += 1
      if (unordered.has(name)) continue
      for (const each of earlier) expect(generation).toBeGreaterThanOrEqual(each.generation)
      if (id === undefined || pruned.has(model.key(name, id))) continue
      expect(earlier.filter((each) => each.operation === id)).toEqual([])
    }
  }
}

it('a guard does what its model does, and keeps its invariants, whatever comes', async () => {
  const said = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 10, maxLength: 60 }), async (actions) => {
      const world = new ModelWorld()
      const oracle = new Oracle(world)
      try {
        for (const each of actions) {
          await world.take(each)
          await world.check()
          oracle.check()
        }
        for (const each of world.said) said.set(each, (said.get(each) ?? 0) + 1)
      } finally {
        await world.close()
      }
    }),
    { numRuns: 150 },
  )
  // The walk has been everywhere: a property that never met a verdict says nothing about it.
  const all = ['applied', 'replayed', 'stale', 'conflict', 'mismatch', 'in_flight']
  expect([...said.keys()]).toEqual(expect.arrayContaining([...all, 'outcome_unknown', 'sealed']))
}, 60_000)
