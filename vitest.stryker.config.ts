import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { generatedParts } from './test/mutants/generated-parts.ts'
import config from './vitest.config.ts'

/**
 * The tests that generated mutants are put to: those of the part that is mutated. Each mutant
 * meets only those of them that reach it.
 */
export default defineConfig({
  ...config,
  root: fileURLToPath(new URL('.', import.meta.url)),
  test: {
    include: generatedParts.get(process.env.MUTATION_PART ?? '')?.tests ?? [],
    // A mutant is switched on in modules that are loaded already: loading them again shows nothing.
    isolate: false,
    testTimeout: 20_000,
  },
})
