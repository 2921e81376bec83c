import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'writefence-history-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function judged(text: string) {
  const path = join(folder, 'history.jsonl')
  writeFileSync(path, text)
  return judgedAt(path)
}

function judgedAt(path: string) {
  const script = ['--import', 'tsx', 'scripts/check-history.ts', path]
  const { status, stdout, stderr } = spawnSync(process.execPath, script, {
    cwd: root,
    encoding: 'utf8',
  })
  return { status, stdout, stderr: stderr.replaceAll(path, '<file>') }
}

/** The example in the docs, which has to be one. */
const example = /```json\n([^`]*)```/.exec(readFileSync(join(root, 'docs/history.md'), 'utf8'))?.[1]

it('a history that keeps the rules is judged so, the example of the docs included', () => {
  expect(judged(example ?? '')).toEqual({
    status: 0,
    stdout: 'check-history: events=5 operations=1 effects=1 claims=1 violations=0\n',
    stderr: '',
  })
})

it('a history that breaks a rule is told which, and fails', () => {
  const lines = (example ?? '').trim().split('\n')
  expect(judged(lines.slice(0, 4).join('\n'))).toEqual({
    status: 1,
    stdout:
      'acknowledged_lost: bank/import-42 credit-1: c2 was told that it is applied\n' +
      'check-history: events=4 operations=1 effects=0 claims=1 violations=1\n',
    stderr: '',
  })
})

it('a file that is no history is told where', () => {
  const { status, stdout, stderr } = judged('{"event":"fence"}')
  expect({ status, stdout, stderr }).toEqual({
    status: 2,
    stdout: '',
    stderr: '<file>: line 1: fence needs jobId, generation\n',
  })
})

it('a file that cannot be read is named in one line, and is no broken rule', () => {
  const missing = judgedAt(join(folder, 'missing.jsonl'))
  const why = "ENOENT: no such file or directory, open '<file>'"
  const stderr = `<file>: cannot be read: ${why}\n`
  expect(missing).toEqual({ status: 2, stdout: '', stderr })
  expect(judgedAt(folder)).toMatchObject({ status: 2, stderr: expect.stringMatching(/^.+\n$/) })
})

it('what a seed was simulated to is judged apart from the simulation', () => {
  const path = join(folder, 'simulated.jsonl')
  const script = ['--import', 'tsx', 'scripts/simulate.ts', '--seed', '3', '--history', path]
  expect(spawnSync(process.execPath, script, { cwd: root }).status).toBe(0)
  const history = readFileSync(path, 'utf8')
  const { status, stdout } = judged(history)
  expect(status).toBe(0)
  expect(stdout).toContain(`events=${history.trim().split('\n').length} `)
  // Without what took place, what was acknowledged is missed.
  const lines = history.split('\n').filter((line) => !line.includes('"event":"applied"'))
  expect(judged(lines.join('\n')).stdout).toMatch(/^acknowledged_lost: /)
})
