/** Tests that need a real server: all of them or, where none answers and none is required, one. */

import { describe, it } from 'vitest'

const required = process.env.CI === 'true' || process.env.REQUIRE_ENGINES === '1'

/** What a server has against being asked; `undefined` where it answers. */
export async function problemOf(ask: () => Promise<unknown>): Promise<unknown> {
  try {
    await ask()
    return undefined
  } catch (error) {
    return error
  }
}

/** A chapter of laws that hold on one engine. */
export function describeEngine(engine: string, problem: unknown, laws: () => void): void {
  describe(engine, () => {
    it('the server answers, where it is required', () => {
      if (problem !== undefined && required) throw problem
    })
    if (problem === undefined) laws()
    else console.warn(`${engine}: its laws were not tried, since it does not answer: ${problem}`)
  })
}
