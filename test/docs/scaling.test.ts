import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { posix } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { optionsFrom, SECTIONS } from '../../bench/scaling/options.ts'
import { manifest, read, root } from '../house/project.ts'

const SCALING = 'docs/scaling.md'
const text = read(SCALING)
const measured = /<!-- begin: .* -->\n(.*)<!-- end -->/s.exec(text)?.[1] ?? ''

/** The chapters that the measurement prints, each with the heads of its tables. */
function headsOf(printed: string): Map<string, string[]> {
  const chapters = printed.split(/^### /m).slice(1)
  return new Map(
    chapters.map((chapter) => {
      const [name = '', ...lines] = chapter.split('\n')
      const heads = lines.filter((_, i) => /^\|-/.test(lines[i + 1] ?? ''))
      return [name, [...new Set(heads)]]
    }),
  )
}

describe('the commands', () => {
  const commands = [...text.matchAll(/`npm run ([\w:-]+)(?: -- ([^`]*))?`/g)]
  const options = [...text.matchAll(/`(--\w+[^`]*)`/g)].map(([, option = '']) => option)

  it('are scripts of the package', () => {
    expect(commands.map(([, name]) => name)).toContain('bench:scaling')
    for (const [, name = ''] of commands) expect(manifest().scripts).toHaveProperty([name])
  })

  it('have options that the measurement takes', () => {
    expect(options.length).toBeGreaterThan(2)
    for (const option of options) expect(() => optionsFrom(option.split(' '))).not.toThrow()
    expect(() => optionsFrom(['--fence', '7'])).toThrow('--fence')
    expect(() => optionsFrom(['--only', 'nothing'])).toThrow('--only')
    expect(() => optionsFrom(['--engine', 'oracle'])).toThrow('--engine')
    expect(() => optionsFrom(['--fences', '1e3,many'])).toThrow('--fences')
  })
})

describe('the figures', () => {
  it('say when, of which commit and on what they were measured', () => {
    const parts = [/\d{4}-\d\d-\d\d/, /commit [0-9a-f]{7,}/, /\d+ cores/, /Node \d+\.\d+\.\d+/]
    const head = [...parts, /load [\d.]+ before/].map(({ source }) => source).join(', ')
    expect(measured).toMatch(new RegExp(`^${head}$`, 'm'))
    expect(measured).toMatch(/^load [\d.]+ after$/m)
  })

  it('are of every chapter, up to 10^7 fences', () => {
    expect([...headsOf(measured).keys()]).toEqual([...SECTIONS])
    for (const power of ['10^3', '10^4', '10^5', '10^6', '10^7']) {
      expect(measured).toContain(`\n| ${power} |`)
    }
  })

  it('are in the tables that the measurement prints now', async () => {
    const args = ['--import', 'tsx', 'bench/scaling.ts', '--short', '--engine', 'sqlite']
    const run = await promisify(execFile)(process.execPath, args, { cwd: root })
    const printed = headsOf(run.stdout)
    const [written, now] = [headsOf(measured), printed]
    expect([...now.keys()]).toEqual([...written.keys()])
    for (const [name, heads] of now)
      expect(written.get(name)).toEqual(expect.arrayContaining(heads))
    expect(run.stdout).toMatch(/^scaling: engines=1 sections=\d+ seconds=\d+\n$/m)
  }, 60_000)
})

it('the links lead to files', () => {
  const links = [...text.matchAll(/\]\((?!https:|#)([^)#]+)(?:#[^)]*)?\)/g)]
  expect(links.length).toBeGreaterThan(3)
  for (const [, link = ''] of links)
    expect(existsSync(root + posix.join('docs', link)), link).toBe(true)
})
