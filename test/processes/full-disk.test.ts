import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { intent, refused } from '../../src/conformance/fence-destination.ts'
import { open, SqliteDestination } from '../support/sqlite-destination.ts'
import { type Child, start } from './spawn.ts'

const quietly = { stdio: 'ignore' } as const

interface Limited {
  readonly child: Child
  readonly path: string
  /** What became of each of so many new operations, all sent at once. */
  write(count: number): Promise<string[]>
  /** How all of them have ended so far. */
  readonly endings: string[]
  /** The same operations again, from the first on. */
  again(): Promise<string[]>
  pragma(text: string): Promise<void>
}

/** The destination in test/processes/limited.ts, on a file in that folder. */
async function limited(folder: string): Promise<Limited> {
  const path = join(folder, 'destination.sqlite')
  const child = start('limited.ts', path)
  await child.line()
  const operations: string[] = []
  const endings: string[] = []
  const ask = async (message: object): Promise<string[]> => {
    child.tell(JSON.stringify(message))
    return JSON.parse(await child.line())
  }
  return {
    child,
    path,
    endings,
    async write(count) {
      const added = Array.from({ length: count }, (_, i) => `op ${operations.length + i}`)
      operations.push(...added)
      const ended = await ask({ operations: added })
      endings.push(...ended)
      return ended
    },
    again: () => ask({ operations }),
    pragma: async (text) => void (await ask({ pragma: text })),
  }
}

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'writefence-disk-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

/** Writes until nothing is taken any more, a hundred times in vain, and once more with room. */
async function fillsUp(destination: Limited, makeRoom: () => unknown, full: string) {
  const { path, endings, write, again } = destination
  do await write(10)
  while (endings.at(-1) === 'applied' && endings.length < 10_000)
  const during: string[] = []
  while (during.length < 100) during.push(...(await write(10)))
  // As another process sees it: what was acknowledged is there, and nothing else is.
  const acknowledged = endings.filter((ending) => ending === 'applied').length
  const d = new SqliteDestination(open(path))
  expect(d.log()).toHaveLength(acknowledged)
  expect(new Set(endings)).toEqual(new Set(['applied', full]))
  expect(new Set(during)).toEqual(new Set([full]))

  await makeRoom()
  const after = await again()
  expect(new Set(after)).toEqual(new Set(['replayed', 'applied']))
  expect(after.filter((ending) => ending === 'replayed')).toHaveLength(acknowledged)
  expect(new Set(await again())).toEqual(new Set(['replayed']))
  const log = d.log()
  expect(log).toHaveLength(after.length)
  expect(new Set(log).size).toBe(after.length)
  await refused(d.write(intent(4, 'older')), 'stale', { highestGeneration: 5 })
}

const hasLimits = works(() => execFileSync('prlimit', ['--version'], quietly))
const mayMount = works(() => {
  const path = mkdtempSync(join(tmpdir(), 'writefence-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', path], quietly)
    execFileSync('umount', [path], quietly)
  } finally {
    rmSync(path, { recursive: true })
  }
})

function works(attempt: () => unknown): boolean {
  try {
    attempt()
    return true
  } catch {
    return false
  }
}

describe('a disk that is full', () => {
  it.each([
    [hasLimits, 'prlimit: no file could be kept from growing'],
    [mayMount, 'tmpfs: no file system could be mounted'],
  ])('what was not tried is said', (tried, otherwise) => {
    if (!tried) console.warn(`full disk: ${otherwise}, so that this was not tried`)
  })

  if (hasLimits) {
    it('answers store_unavailable and goes on later, where no file may grow', async () => {
      const destination = await limited(folder())
      const { child, path, write } = destination
      const limit = (bytes: string) => {
        const { pid } = child.process
        execFileSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:`], quietly)
      }
      expect(new Set(await write(20))).toEqual(new Set(['applied']))
      limit(String(statSync(`${path}-wal`).size + 100_000))
      await fillsUp(destination, () => limit('unlimited'), 'store_unavailable')
    }, 60_000)
  }

  if (mayMount) {
    it('answers store_unavailable and goes on later, where the file system is full', async () => {
      const disk = folder()
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk], quietly)
      let destination: Limited | undefined
      onTestFinished(async () => {
        destination?.child.process.kill('SIGKILL')
        await destination?.child.ended
        execFileSync('umount', ['--lazy', disk], quietly)
      })
      destination = await limited(disk)
      const makeRoom = () => execFileSync('mount', ['-o', 'remount,size=64m', disk], quietly)
      await fillsUp(destination, makeRoom, 'store_unavailable')
    }, 60_000)
  }

  it("fails the effect's own statement where the database may have no more pages", async () => {
    const destination = await limited(folder())
    await destination.pragma('max_page_count = 60')
    const makeRoom = () => destination.pragma('max_page_count = 1000000')
    await fillsUp(destination, makeRoom, 'SQLITE_FULL')
  }, 60_000)
})

describe('a database that takes no writes for a while', () => {
  it('answers store_unavailable and goes on later', async () => {
    const destination = await limited(folder())
    expect(new Set(await destination.write(20))).toEqual(new Set(['applied']))
    await destination.pragma('query_only = ON')
    await fillsUp(destination, () => destination.pragma('query_only = OFF'), 'store_unavailable')
  }, 60_000)
})
