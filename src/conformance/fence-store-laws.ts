import { fenceEffectLaws } from './fence-effect-laws.ts'
import { fenceEndingLaws } from './fence-ending-laws.ts'
import { fenceIdentifierLaws } from './fence-identifier-laws.ts'
import { fenceRerunLaws } from './fence-rerun-laws.ts'
import type { FenceStoreLaw } from './fence-store-context.ts'
import { fenceUnfencedLaws } from './fence-unfenced-laws.ts'
import { fenceVerdictLaws } from './fence-verdict-laws.ts'
import { fenceWriteLaws } from './fence-write-laws.ts'

/**
 * What every fence store has to do, as data: for each law, make a fresh context and run it.
 *
 * ```ts
 * for (const law of fenceStoreLaws) it(law.name, () => law.run(context()))
 * ```
 */
export const fenceStoreLaws: readonly FenceStoreLaw[] = [
  ...fenceVerdictLaws,
  ...fenceWriteLaws,
  ...fenceUnfencedLaws,
  ...fenceEffectLaws,
  ...fenceRerunLaws,
  ...fenceEndingLaws,
  ...fenceIdentifierLaws,
]
