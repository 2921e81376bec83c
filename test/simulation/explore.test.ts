import { describe, expect, it } from 'vitest'
import { allBroken, exploreTask } from './explore-task.ts'
import { explore } from './explorer.ts'
import { labOf } from './lab.ts'
import type { Plan } from './plan.ts'
import { worlds } from './worlds.ts'

const to = 'bank'
const small: Plan = {
  name: 'small',
  destinations: [to],
  workers: [
    { name: 'a', token: { generation: 1 }, steps: [{ verb: 'effect', to, operationId: 'x' }] },
    { name: 'b', token: { generation: 2 }, steps: [{ verb: 'write', to, operationId: 'y' }] },
  ],
  gate: 'later',
  time: [{ name: 'deadline passes', moves: { [to]: 60_001 }, times: 1 }],
  faults: { atMost: 1, of: { 'land-silent': 1, 'crash-destination': 1, again: 1 } },
}

describe('the exploration', () => {
  it('has worlds with different names', () => {
    const names = worlds.map(({ name }) => name)
    expect(new Set(names).size).toBe(worlds.length)
  })

  it.each([
    'two holders of one generation',
    'two jobs and two scopes',
    'effects that throw inside the transaction',
  ])('finds nothing wrong in "%s"', async (world) => {
    const { violations, states, rests } = await exploreTask({ world, short: true })
    expect(violations).toEqual([])
    expect(states).toBeGreaterThan(50)
    expect(rests).toBeGreaterThan(20)
  })

  it('that follows equal states once covers what one that follows them all does', async () => {
    const lab = await labOf()
    const all = await explore(small, lab, { prune: false })
    const once = await explore(small, lab)
    expect(all.violations).toEqual([])
    expect(all.steps).toBeGreaterThan(2 * once.steps)
    const { schedules, states, violations } = once
    expect({ schedules, states, violations }).toEqual({
      schedules: all.schedules,
      states: all.states,
      violations: all.violations,
    })
  })
})

describe('a store with a known fault is found out', () => {
  const found = async ({ name: broken, world }: (typeof allBroken)[number]) => {
    const { violations } = await exploreTask({ world, short: true, broken })
    expect(violations).toHaveLength(1)
    expect(violations[0]?.history.length).toBeGreaterThan(1)
  }
  it.each(allBroken)('$name', found, 120_000)
})
