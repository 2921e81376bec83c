import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, it } from 'vitest'
import { root } from '../house/project.ts'

// The demo's own files are looked for here; what tsx has compiled need not be compiled again.
const TMPDIR = mkdtempSync(join(tmpdir(), 'demo-test-'))
for (const name of readdirSync(tmpdir()).filter((each) => each.startsWith('tsx-'))) {
  symlinkSync(join(tmpdir(), name), join(TMPDIR, name))
}
const groups: number[] = []

/** Starts the demo of a copy of the repository, in a process group that can be asked for. */
function start(repository: string): ChildProcess & { pid: number } {
  const child = spawn(process.execPath, ['--import', 'tsx', 'examples/demo/main.ts'], {
    cwd: repository,
    env: { PATH: process.env.PATH, TMPDIR },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  if (child.pid === undefined) throw new Error('the demo did not start')
  groups.push(child.pid)
  return Object.assign(child, { pid: child.pid })
}

async function ending(demo: ChildProcess) {
  const [stdout, stderr, [code]] = await Promise.all([
    demo.stdout === null ? '' : text(demo.stdout),
    demo.stderr === null ? '' : text(demo.stderr),
    once(demo, 'exit') as Promise<[number | null]>,
  ])
  return { code, stdout, stderr }
}

function isAlive(group: number): boolean {
  try {
    return process.kill(-group, 0)
  } catch {
    return false
  }
}

/** The compiler that tsx keeps beside a process ends by itself, a moment after that process. */
async function nothingLeft({ pid }: { pid: number }): Promise<void> {
  expect(readdirSync(TMPDIR).filter((name) => name.startsWith('writefence-'))).toEqual([])
  await expect.poll(() => isAlive(pid), { timeout: 10_000 }).toBe(false)
}

afterAll(() => {
  for (const group of groups) if (isAlive(group)) process.kill(-group, 'SIGKILL')
  rmSync(TMPDIR, { recursive: true, force: true })
})

describe('the demo', { timeout: 60_000 }, () => {
  it('shows the late write refused with the guard and landing without it', async () => {
    const demo = start(root)
    const { code, stdout, stderr } = await ending(demo)
    expect(stderr).toBe('')
    expect(stdout).toMatch(/ A +7 .* 412 stale, 7 < 8 +201, balance 146\n/)
    expect(stdout).toMatch(/ B +8 .* 201 replayed, balance 123 +201, balance 126\n/)
    expect(stdout).toMatch(/final balance +123 = 100\+20\+3 +146 = 100\+20\+3\+3\+20\n/)
    expect(stdout).not.toContain('\u001b')
    expect(code).toBe(0)
    await nothingLeft(demo)
  })

  it('leaves nothing behind where it is interrupted while a worker stands still', async () => {
    const demo = start(root)
    demo.stdout?.on('data', (chunk) => {
      if (String(chunk).includes('SIGSTOP: stands still')) demo.kill('SIGTERM')
    })
    expect(await ending(demo)).toMatchObject({ code: 1, stderr: 'ended: SIGTERM\n' })
    await nothingLeft(demo)
  })

  it('fails, and leaves nothing behind, where an answer differs from what it says', async () => {
    const copy = mkdtempSync(join(TMPDIR, 'copy-'))
    for (const path of ['src', 'node_modules']) symlinkSync(join(root, path), join(copy, path))
    for (const path of ['examples', 'tsconfig.json', 'package.json']) {
      cpSync(join(root, path), join(copy, path), { recursive: true })
    }
    const destination = join(copy, 'examples/demo/destination.ts')
    const fails = (source: string) => source.replace('insert.run(amount)', 'insert.run(amount + 1)')
    writeFileSync(destination, fails(readFileSync(destination, 'utf8')))

    const demo = start(copy)
    const { code, stdout, stderr } = await ending(demo)
    expect(stderr).toContain('201 applied, balance 101')
    expect(stdout).not.toContain('credits 100')
    expect(code).toBe(1)
    await nothingLeft(demo)
  })
})
