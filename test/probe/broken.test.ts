import { describe, expect, it } from 'vitest'
import type { ProbeFinding, ProbeProperty } from 'writefence/conformance'
import { brokenDestinations } from './broken-destinations.ts'
import { PlainDestination } from './plain-destination.ts'
import { probed } from './probing.ts'

const failing = (findings: readonly ProbeFinding[]) =>
  findings.filter(({ holds }) => holds === false)
const untried = (findings: readonly ProbeFinding[]) =>
  findings.filter(({ holds }) => holds === undefined).map(({ property }) => property)

/** What only the effects themselves show. */
const needsEffects: readonly ProbeProperty[] = ['orders_concurrent_generations']

describe('a destination written from the protocol alone', () => {
  it('has every property', async () => {
    const findings = await probed(new PlainDestination(), true)
    expect(failing(findings)).toEqual([])
    expect(untried(findings)).toEqual([])
  })

  it('has every property that answers alone can show', async () => {
    const findings = await probed(new PlainDestination(), false)
    expect(failing(findings)).toEqual([])
    expect(untried(findings)).toEqual(needsEffects)
  })
})

describe.each(brokenDestinations)('$fault', ({ make, shows }) => {
  it(`is found out: ${shows}`, async () => {
    const findings = await probed(make(), true)
    expect(failing(findings).map(({ property }) => property)).toContain(shows)
  })
})

describe('a replay with a body of its own', () => {
  it('is all that is said of a destination that keeps to the rest', async () => {
    const broken = brokenDestinations.find(
      ({ fault }) => fault === 'a replay with a body of its own',
    )
    const findings = failing(await probed(broken?.make() ?? new PlainDestination(), true))
    expect(findings.map(({ property }) => property)).toEqual(['replays_duplicates'])
    expect(findings[0]?.detail).toMatch(
      /gives the recorded answer again, but it got 201 .*replayed/,
    )
  })
})

describe.each(brokenDestinations.filter(({ shows }) => !needsEffects.includes(shows)))(
  '$fault, judged by its answers alone',
  ({ make, shows }) => {
    it(`is found out: ${shows}`, async () => {
      const findings = await probed(make(), false)
      expect(failing(findings).map(({ property }) => property)).toContain(shows)
    })
  },
)
