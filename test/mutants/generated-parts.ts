/** The parts of the sources that Stryker mutates, and the tests that each has to get past. */

export interface GeneratedPart {
  readonly mutate: string
  readonly tests: string[]
}

/** By name; each runs in one process on embedded SQLite, without any service. */
export const generatedParts: ReadonlyMap<string, GeneratedPart> = new Map([
  [
    'guard',
    {
      mutate: 'src/guard/**/*.ts',
      tests: [
        'test/options.test.ts',
        'test/guard/*.test.ts',
        'test/conformance/fence-store.sqlite.test.ts',
        'test/storage/sqlite/*.test.ts',
      ],
    },
  ],
  [
    'storage/sqlite',
    {
      mutate: 'src/storage/sqlite/**/*.ts',
      tests: [
        'test/options.test.ts',
        'test/storage/*.test.ts',
        'test/storage/sqlite/*.test.ts',
        'test/conformance/*.sqlite.test.ts',
        'test/guard/*.test.ts',
      ],
    },
  ],
  [
    'lease',
    {
      mutate: 'src/lease/**/*.ts',
      tests: [
        'test/options.test.ts',
        'test/lease/*.test.ts',
        'test/storage/http/*.test.ts',
        'test/conformance/lease-store.*.test.ts',
        'test/wire/*.test.ts',
      ],
    },
  ],
  [
    'http',
    {
      mutate: 'src/http/**/*.ts',
      tests: [
        'test/options.test.ts',
        'test/http/*.test.ts',
        'test/express/*.test.ts',
        'test/wire/*.test.ts',
      ],
    },
  ],
])
